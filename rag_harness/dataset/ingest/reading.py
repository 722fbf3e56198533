"""One reading of many files: the process that parses them, and what was parsed before."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4
from zlib import crc32

from rag_harness.dataset.ingest.child import KINDS
from rag_harness.dataset.ingest.isolated import Child
from rag_harness.dataset.ingest.parsed import Parsed, Passing, PassingError, passing, unpacked
from rag_harness.dataset.ingest.places import read_bytes
from rag_harness.files.atomic import write_atomically
from rag_harness.registry.identity import code_digest

if TYPE_CHECKING:
    from filelock import FileLock

_LIBRARIES = ("pypdf", "charset-normalizer", "cryptography", "pycryptodome")
"""The last two are pypdf's for files encrypted with AES, where one of them is installed."""
_WITHOUT_CHARSET = ("txt", "html")
"""Kinds of files that may not say which charset they are in."""
_PROCESS = uuid4().hex
_CHECK = 20
"""Bytes in front of what is kept: is all of it there?"""


@dataclass
class Reading:
    """Parses each content once: what came of it is kept under the digest of its bytes and of whatever parsed it.

    What may not come again, as a file that took too long, is kept for this run alone: in all its processes the file is
    read, or in none.

    Attributes:
        folder: where it is kept; None keeps nothing.
        writes: whether anything may be written there.
        apart: whether nobody else reads the same files meanwhile: then nobody is waited for.
        charset: of text and HTML files that are not UTF-8 and name none; empty is the likeliest.
        parsed: files that were parsed.
    """

    folder: Path | None = None
    writes: bool = False
    apart: bool = False
    charset: str = ""
    parsed: int = 0
    child: Child = field(default_factory=Child)
    _turn: FileLock | None = None

    def parse(self, kind: str, file: Path) -> Parsed:
        """Return what came of ``file``.

        Raises:
            UnreadableError, OSError: it cannot be read.
        """
        kind = f"{kind}@{self.charset}" if self.charset and kind in _WITHOUT_CHARSET else kind
        data = read_bytes(file)
        place = self._place(kind, data)
        answer = _known(place) if place else None
        if answer is None and place and self.writes and not self.apart:
            # Processes of one run read the same folder at once: whoever is first parses, the others find it done.
            self._wait_for_turn(place)
            answer = _known(place)
        if answer is None:
            self.parsed += 1
            answer = self._asked(kind, data)
            if place and self.writes:
                _keep(place, answer)
        return unpacked(answer)

    def _asked(self, kind: str, data: bytes) -> bytes:
        try:
            answer = self.child.answer(kind, data)
        except PassingError as error:
            return Passing(str(error), _run()).packed()
        fault = passing(answer)
        return replace(fault, run=_run()).packed() if fault else answer

    def end(self) -> None:
        """End the process, and let others parse."""
        self.child.close()
        if self._turn is not None:
            self._turn.release()

    def _wait_for_turn(self, place: Path) -> None:
        if self._turn is None:
            from filelock import FileLock

            with suppress(OSError):  # what cannot be locked cannot be kept either, and each parses for itself
                place.parent.mkdir(parents=True, exist_ok=True)
                lock = FileLock(place.parents[1] / "parsing.lock")
                lock.acquire()
                self._turn = lock

    def _place(self, kind: str, data: bytes) -> Path | None:
        if self.folder is None:
            return None
        digest = sha256(data).hexdigest()  # which processors have an instruction for
        return self.folder / "parsed" / f"{kind}-{_parser()}" / digest[:2] / digest[2:]


_current: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(
    folder: Path | None = None, writes: bool = False, apart: bool = False, charset: str = ""
) -> Iterator[Reading]:
    """Let loaders share one process while the block lasts, and find and keep what was parsed in ``folder``."""
    made = Reading(folder, writes, apart, charset)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
        made.end()


def parsed(kind: str, file: Path) -> Parsed:
    """Return what came of ``file``, parsed as ``kind`` in another process, with the reading that is going on if any.

    Raises:
        UnreadableError, OSError: it cannot be read.
    """
    here = _current.get()
    if here is not None:
        return here.parse(kind, file)
    with reading() as alone:
        return alone.parse(kind, file)


def parsed_by() -> str:
    """Return what decides what comes of a file, as a digest: two nodes with the same read the same."""
    return _parser()


@lru_cache
def _parser() -> str:
    """Name what decides what comes of a file: the code of the parsers, and the libraries that they call."""
    parsers = [f"rag_harness.dataset.ingest.{module}" for module in ("child", *KINDS.values())]
    made_by = [code_digest(*parsers), platform.python_version(), *map(_version, _LIBRARIES)]
    return blake2b("\0".join(made_by).encode(), digest_size=8).hexdigest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _run() -> str:
    """Name what has one answer of a file: the processes of one run, or this process."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", _PROCESS)


def _known(place: Path) -> bytes | None:
    answer = _kept(place)
    fault = passing(answer) if answer else None
    return answer if fault is None or fault.run == _run() else None


def _kept(place: Path) -> bytes | None:
    with suppress(OSError):
        content = place.read_bytes()
        # A power cut leaves zeros in a file that was renamed in time.
        if content[:_CHECK] == _check(memoryview(content)[_CHECK:]):
            return content[_CHECK:]
    return None


def _keep(place: Path, answer: bytes) -> None:
    with suppress(OSError):  # the disk is full, or refuses: it is parsed again next time
        write_atomically(place, _check(answer) + answer)


def _check(answer: bytes | memoryview) -> bytes:
    return b"%08x%012x" % (crc32(answer), len(answer))
