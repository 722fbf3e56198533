"""One reading of many files: checks of their places, the child process, and the cache of parsed files."""

from __future__ import annotations

import os
import platform
import unicodedata
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

from rag_harness.core.errors import UnreadableError
from rag_harness.core.files import reference_fault, regular_bytes, write_atomically
from rag_harness.core.package import package_digest
from rag_harness.data.loaders.child_process import Child, Parsed, Passing, PassingError, passing, unpacked

if TYPE_CHECKING:
    from filelock import FileLock


MOST_FILE_BYTES = 64 << 20
"""Most bytes of one file. Documents are never that long, but a sparse file may claim any length."""


_FORGES = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories: control characters, surrogates, line and paragraph separators."""


def fault_of_place(file: Path, folder: Path) -> str:
    """Return why ``file`` is not opened as a document of ``folder``; empty where it may be opened.

    A link may point to another place in the folder. A name with a line break could forge lines in prompts, results
    and reports.
    """
    name = file.relative_to(folder).as_posix()
    if not name.isprintable() and any(unicodedata.category(each) in _FORGES for each in name):
        return "its name has control characters or is not Unicode. Rename it"
    # A walk follows no folder that is a link, so a file that is none lies where its name says: resolving is slow.
    with suppress(OSError):
        if file.is_file() and not file.is_symlink():
            return ""
    return reference_fault(file, folder)


def read_bytes(file: Path) -> bytes:
    """Return all bytes of a file.

    Raises:
        UnreadableError: the file is longer than ``MOST_FILE_BYTES``.
        OSError: the file cannot be read.
    """
    with file.open("rb") as stream:
        # The stated size first, because of sparse files. Then the bytes read, because a file may grow meanwhile.
        too_long = file.stat().st_size > MOST_FILE_BYTES
        data = b"" if too_long else stream.read(MOST_FILE_BYTES + 1)
    if too_long or len(data) > MOST_FILE_BYTES:
        raise UnreadableError(f"longer than {MOST_FILE_BYTES >> 20} MB. Split it")
    return data


_LIBRARIES = ("pypdf", "charset-normalizer", "cryptography", "pycryptodome", "mammoth", "openpyxl", "PyYAML")
"""Libraries of the parsers. pypdf uses cryptography or pycryptodome for files encrypted with AES."""
_WITHOUT_CHARSET = ("txt", "html", "csv")
"""Kinds of files that may not state their charset."""
_PROCESS = uuid4().hex
_CHECK = 20
"""Length in bytes of the checksum before each cached result."""


@dataclass
class FileReading:
    """Parses each content once. The result is cached under the digest of the bytes and of what parsed them.

    A temporary fault, such as a file that took too long, is cached for this run alone. So all processes of the run
    read the file, or none does.

    Attributes:
        folder: the folder of the cache; None caches nothing.
        writes: whether the cache may be written.
        apart: whether no other process reads the same files meanwhile. Then no lock is needed.
        charset: the charset of text and HTML files that are not UTF-8 and name none; empty: the likeliest.
        parsed: number of files that were parsed.
    """

    folder: Path | None = None
    writes: bool = False
    apart: bool = False
    charset: str = ""
    parsed: int = 0
    child: Child = field(default_factory=Child)
    _turn: FileLock | None = None

    def parse(self, kind: str, file: Path) -> Parsed:
        """Return the parsed ``file``.

        Raises:
            UnreadableError, OSError: the file cannot be read.
        """
        kind = f"{kind}@{self.charset}" if self.charset and kind in _WITHOUT_CHARSET else kind
        data = read_bytes(file)
        place = self._place(kind, data)
        answer = _known(place) if place else None
        if answer is None and place and self.writes and not self.apart:
            # Processes of one run read the same folder at once. The first one parses, the others use its result.
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
        """End the child process, and let other processes parse."""
        self.child.close()
        if self._turn is not None:
            self._turn.release()

    def _wait_for_turn(self, place: Path) -> None:
        if self._turn is None:
            from filelock import FileLock

            with suppress(OSError):  # a folder without locks has no cache either, so each process parses for itself
                place.parent.mkdir(parents=True, exist_ok=True)
                lock = FileLock(place.parents[1] / "parsing.lock")
                lock.acquire()
                self._turn = lock

    def _place(self, kind: str, data: bytes) -> Path | None:
        if self.folder is None:
            return None
        digest = sha256(data).hexdigest()  # processors have an instruction for it
        return self.folder / "parsed" / f"{kind}-{_parser()}" / digest[:2] / digest[2:]


_current: ContextVar[FileReading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(
    folder: Path | None = None, writes: bool = False, apart: bool = False, charset: str = ""
) -> Iterator[FileReading]:
    """Let loaders share one child process during the block, and a cache of parsed files in ``folder``."""
    made = FileReading(folder, writes, apart, charset)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
        made.end()


def parsed_file(kind: str, file: Path) -> Parsed:
    """Return ``file`` parsed as ``kind`` in a child process, by the current reading if there is one.

    Raises:
        UnreadableError, OSError: the file cannot be read.
    """
    here = _current.get()
    if here is not None:
        return here.parse(kind, file)
    with reading() as alone:
        return alone.parse(kind, file)


def parsed_by() -> str:
    """Return a digest of everything that decides the result of parsing. Nodes with the same digest parse alike."""
    return _parser()


@lru_cache
def _parser() -> str:
    """Name everything that decides the result of parsing: this package and the libraries that parsers call."""
    made_by = [package_digest(), platform.python_version(), *map(_version, _LIBRARIES)]
    return blake2b("\0".join(made_by).encode(), digest_size=8).hexdigest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _run() -> str:
    """Name the run, whose processes share temporary faults; or this process."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", _PROCESS)


def _known(place: Path) -> bytes | None:
    answer = _kept(place)
    fault = passing(answer) if answer else None
    return answer if fault is None or fault.run == _run() else None


def _kept(place: Path) -> bytes | None:
    with suppress(OSError):
        content = regular_bytes(place)
        # A power cut can leave zeros in a file that was already renamed.
        if content[:_CHECK] == _check(memoryview(content)[_CHECK:]):
            return content[_CHECK:]
    return None


def _keep(place: Path, answer: bytes) -> None:
    with suppress(OSError):  # the disk is full, or refuses: the file is parsed again next time
        write_atomically(place, _check(answer) + answer)


def _check(answer: bytes | memoryview) -> bytes:
    return b"%08x%012x" % (crc32(answer), len(answer))
