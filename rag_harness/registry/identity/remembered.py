"""A cache of parsed source files. Parsing a file takes a hundred times as long as looking at its size and times.

A file is unchanged where its size, modification time and change time are the same; otherwise where its bytes are.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from time import time_ns
from typing import Any

from rag_harness.files.atomic import write_atomically
from rag_harness.registry.identity import python_source
from rag_harness.registry.identity.python_source import PythonSource, read_source, source_as_json, source_of_json

REMEMBERED_FILE = "code.json"
_YOUNG = 2 * 10**9
"""Nanoseconds. Clocks of file systems are coarse: a file may change twice within one tick. So the times of a file that
changed shortly before it was read are not trusted."""


class Remembered:
    """The sources of files, kept in a folder from one process to the next.

    Args:
        folder: the folder of the cache; None: no cache. A folder that cannot be written is no error, because the
            cache only saves time.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else folder / REMEMBERED_FILE
        self._known: dict[str, Any] | None = None
        self._is_new = False

    def source(self, file: str) -> PythonSource | None:
        """Return the parsed source of a file, or None where it cannot be read."""
        try:
            stat = os.stat(file)  # noqa: PTH116
            looks = [stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size]
            kept_looks, kept_digest, kept = self._entry(file)
            if kept is not None and kept_looks == looks:
                return kept
            content = Path(file).read_bytes()
        except OSError:
            return None
        digest = blake2b(content, digest_size=16).hexdigest()
        source = kept if kept is not None and kept_digest == digest else read_source(content)
        is_old = time_ns() - max(looks[:2]) > _YOUNG
        self._all[file] = [looks if is_old else None, digest, source_as_json(source)]
        self._is_new = True
        return source

    def _entry(self, file: str) -> tuple[Any, Any, PythonSource | None]:
        """Return the cached size and times of a file, the digest of its bytes, and its source. None: unknown."""
        try:
            looks, digest, kept = self._all[file]
            return looks, digest, source_of_json(kept)
        except (KeyError, ValueError, TypeError):
            return None, None, None

    @property
    def _all(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self._kept()
        return self._known

    def _kept(self) -> dict[str, Any]:
        if self._file is None:
            return {}
        try:
            said = json.loads(self._file.read_bytes())
            return dict(said["files"]) if said["read_by"] == _reader() else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def keep(self) -> None:
        """Write the cache if it has changed."""
        if self._file is None or not self._is_new:
            return
        self._is_new = False
        there = {file: said for file, said in self._all.items() if os.path.isfile(file)}  # noqa: PTH113
        with suppress(OSError):
            write_atomically(self._file, json.dumps({"read_by": _reader(), "files": there}).encode())


def _reader() -> str:
    """Return the digest of the parser. After a change of the parser, the cache is not used."""
    return blake2b(Path(python_source.__file__).read_bytes(), digest_size=8).hexdigest()
