"""Digests: of a file, of a text, of what JSON can hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_LARGE = 2**26
"""Bytes of all files of a folder from which they are not read."""


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file, as publishers of weights state it; read in pieces, for it may be gigabytes."""
    state = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text; halves of characters count too."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def json_digest(value: Any) -> str:
    """Return the digest of what JSON can hold, whatever the order of its keys; what it cannot hold counts as text."""
    return text_digest(json.dumps(value, sort_keys=True, default=str))


def files_digest(folder: Path, files: Sequence[Path]) -> str:
    """Return the digest of files below a folder: of their paths and bytes, or sizes and times where they are large."""
    stats = [(file, file.stat()) for file in files]
    is_large = sum(stat.st_size for _, stat in stats) > _LARGE
    said = hashlib.blake2b(digest_size=8)
    for file, stat in stats:
        said.update(f"{file.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
        said.update((f"{stat.st_size} {stat.st_mtime_ns}" if is_large else file_digest(file)).encode())
    return said.hexdigest()
