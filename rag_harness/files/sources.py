"""Digests of files, texts and JSON values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_LARGE = 2**26
"""Above this many bytes, the files of a folder are not read. Their sizes and times count instead."""


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return bytes_digest(file.read_bytes())


def bytes_digest(content: bytes) -> str:
    """Return the digest of bytes, as ``file_digest`` does for a file's."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file, as publishers of weights state it. Large files are read in pieces."""
    state = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text. The text may hold lone surrogates."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def json_digest(value: Any) -> str:
    """Return the digest of a JSON value; the order of keys does not count. What JSON cannot hold counts as text."""
    return text_digest(json.dumps(value, sort_keys=True, default=str))


def files_digest(folder: Path, files: Sequence[Path]) -> str:
    """Return the digest of files below a folder: of paths and bytes. Above a limit, of paths, sizes and times."""
    stats = [(file, file.stat()) for file in files]
    is_large = sum(stat.st_size for _, stat in stats) > _LARGE
    said = hashlib.blake2b(digest_size=8)
    for file, stat in stats:
        said.update(f"{file.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
        said.update((f"{stat.st_size} {stat.st_mtime_ns}" if is_large else file_digest(file)).encode())
    return said.hexdigest()
