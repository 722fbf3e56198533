"""The child process that parses files: its limits, its protocol, and the result of a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from threading import Thread
from typing import IO, BinaryIO
from weakref import WeakSet

from rag_harness.core.errors import UnreadableError
from rag_harness.core.processes import end_python, kill_python, start_python
from rag_harness.core.types import Document

GUESSED = "guessed_charset"
"""Key in the metadata of a document: the charset it was read in, if the file does not state it."""


UNREAD_PARTS = "unread_parts"
"""Key in the metadata of a document: what of its file was not read, a line each."""
BETWEEN_PAGES = "\n\n"


def read_in(charset: str) -> str:
    """Return the note for a document that does not name its charset."""
    return f"read as {charset}, which the file does not say. Save it as UTF-8 where that is wrong"


def unread_parts(document: Document) -> list[str]:
    """Return what of the document's file was not read, a line each."""
    found = document.metadata.get(UNREAD_PARTS)
    return [str(each) for each in found] if isinstance(found, list) else []


class PassingError(UnreadableError):
    """A file could not be read this time: it took too long, or its process was lost."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text. ``pages`` are the offsets of its pages; ``hidden`` counts invisible characters.

    ``guessed`` is the charset if the file does not state it. ``unread_parts`` are the parts that were not read, a line
    each.
    """

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    hidden: int = 0
    unread_pages: tuple[int, ...] = ()
    guessed: str = ""
    unread_parts: tuple[str, ...] = ()

    def document(self, file: Path, doc_id: str) -> Document:
        """Return the document. Empty values are left out of its metadata."""
        known = {
            "hidden_characters": self.hidden,
            "unread_pages": list(self.unread_pages),
            GUESSED: self.guessed,
            UNREAD_PARTS: list(self.unread_parts),
        }
        about = {key: value for key, value in known.items() if value}
        return Document(doc_id, self.text, self.title or file.stem, about, self.pages)


def joined_pages(texts: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return one text of all pages, slides or sheets, and the offset of each."""
    starts = accumulate((len(text) + len(BETWEEN_PAGES) for text in texts[:-1]), initial=0)
    return BETWEEN_PAGES.join(texts), tuple(starts)


def packed(parsed: Parsed) -> bytes:
    """Return ``parsed`` as a line of JSON and then the text. Unpacking need not parse the text."""
    about = [parsed.title, parsed.pages, parsed.hidden, parsed.unread_pages, parsed.guessed, parsed.unread_parts]
    return _line(about) + parsed.text.encode("utf-8", "surrogatepass")


def packed_fault(fault: str) -> bytes:
    """Return the packed reason why a file cannot be read. It differs from any packed result."""
    return _line(fault)


@dataclass(frozen=True, slots=True)
class Passing:
    """Why a file could not be read in ``run``. Another run may succeed.

    ``chance`` says that another process of the same run may succeed, too: the fault is not in the file.
    """

    fault: str
    run: str = ""
    chance: bool = True

    def packed(self) -> bytes:
        """Return the packed fault. It differs from any packed result."""
        return _line({"fault": self.fault, "run": self.run, "chance": self.chance})


def passing(data: bytes) -> Passing | None:
    """Return the temporary fault in ``data``, or None where it is something else."""
    return Passing(**json.loads(data)) if data.startswith(b"{") else None


def fault_in(data: bytes) -> UnreadableError | None:
    """Return the packed fault as an error, or None. It is a PassingError where another process may succeed."""
    about = json.loads(data) if data[:1] in (b'"', b"{") else None
    if isinstance(about, str):
        return UnreadableError(about)
    return (PassingError if about["chance"] else UnreadableError)(about["fault"]) if about else None


def unpacked(data: bytes) -> Parsed:
    """Return the unpacked result.

    Raises:
        UnreadableError: a fault was packed. PassingError: another process may read the file.
        ValueError: the bytes are something else.
    """
    fault = fault_in(data)
    if fault is not None:
        raise fault
    head, line_end, text = data.partition(b"\n")
    about = json.loads(head)
    if not line_end or not isinstance(about, list):
        raise ValueError("neither text nor fault")
    title, pages, hidden, unread, guessed, unread_parts = about
    whole = text.decode("utf-8", "surrogatepass")
    return Parsed(whole, str(title), tuple(pages), int(hidden), tuple(unread), str(guessed), tuple(unread_parts))


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


MEMORY_BYTES = 1 << 30
"""Address space. A stream of 10 kB may unpack to gigabytes."""
PROCESSOR_SECONDS = 14
"""The standard library's HTML parser takes a minute for 120 kB of ``<a x="``."""
WALL_SECONDS = 18.0
OUTPUT_BYTES = 64 << 20
PAGES = 5_000
CELLS = 200_000
"""Most cells of a workbook or a CSV file. More make over 10,000 chunks, and those are the most of a document."""
UNPACKED_BYTES = 256 << 20
"""Most bytes that a docx, pptx or xlsx file may say that it unpacks to."""
OPEN_FILES = 64


def limit_process() -> None:
    """Limit this process, as far as the system can. Windows has no limits; macOS has none for memory."""
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_AS", MEMORY_BYTES), ("RLIMIT_FSIZE", 0), ("RLIMIT_NOFILE", OPEN_FILES), ("RLIMIT_CORE", 0)]
    for name, most in wanted:
        _set(getattr(resource, name), most, most)


def limit_next_file() -> None:
    """Give this process another ``PROCESSOR_SECONDS``, from now on."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + PROCESSOR_SECONDS, resource.RLIM_INFINITY)


def _set(name: int, soft: int, hard: int) -> None:
    from contextlib import suppress
    from resource import setrlimit

    with suppress(ValueError, OSError):
        setrlimit(name, (soft, hard))


# A question is a line ``<kind> <bytes>``, then so many bytes, e.g. of a file. An answer is a line ``<bytes> more``,
# then so many bytes, packed. The line ends with ``last`` if the process ends after the answer. It may be killed at any
# time.

PARSERS = {
    "txt": "rag_harness.data.loaders.text:parse_text",
    "html": "rag_harness.data.loaders.html_pages:parse",
    "pdf": "rag_harness.data.loaders.pdf:parse",
    "csv": "rag_harness.data.loaders.text:parse_csv",
    "eml": "rag_harness.data.loaders.mail:parse",
    "openapi": "rag_harness.data.loaders.openapi:parse",
    "docx": "rag_harness.data.loaders.office:parse_word",
    "pptx": "rag_harness.data.loaders.office:parse_slides",
    "xlsx": "rag_harness.data.loaders.office:parse_sheets",
}
"""The function for each kind of file: ``parse(data) -> Parsed``.

``txt@cp1252`` gives the charset of a file that does not state it.
Any other kind is ``package.module:function``, a function of a package above from bytes to an answer.
"""

_LONGEST_MESSAGE = 300


def parser_at(place: str) -> Callable[..., Parsed]:
    """Return the function at ``module:name``. Its module is imported here, and with it what such files need."""
    module, _, name = place.partition(":")
    found: Callable[..., Parsed] = getattr(import_module(module), name)
    return found


def serve() -> None:
    """Answer until the input ends or memory runs out. After running out, the process ends: its state is unknown."""
    questions, answers = sys.stdin.buffer, _own_output()
    limit_process()
    while question := questions.readline(200):
        kind, size = question.split()
        limit_next_file()
        answer = None
        with suppress(MemoryError):
            answer = _answer(kind.decode(), questions.read(int(size)))
        if answer is None:  # only here is the memory free again
            fault = Passing(f"takes more than {MEMORY_BYTES >> 20} MB of memory to read and cut. Split it")
            _send(answers, fault.packed(), b"last")
            return
        _send(answers, answer, b"more")


def _own_output() -> BinaryIO:
    """Return the pipe for answers. Whatever libraries print is discarded."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return answers


def _answer(kind: str, data: bytes) -> bytes:
    try:
        answer = _made(kind, data)
    except MemoryError:
        raise
    except UnreadableError as error:
        return packed_fault(str(error))
    except Exception as error:
        fault = f"cannot be parsed: {type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
        return Passing(fault, chance=False).packed()
    return answer if len(answer) <= OUTPUT_BYTES else packed_fault(f"holds more than {OUTPUT_BYTES >> 20} MB of text")


def _made(kind: str, data: bytes) -> bytes:
    kind, _, charset = kind.partition("@")
    if kind not in PARSERS:
        module, _, function = kind.partition(":")
        work: Callable[[bytes], bytes] = getattr(import_module(module), function)
        return work(data)
    parse = parser_at(PARSERS[kind])
    return packed(parse(data, charset) if charset else parse(data))


def _send(answers: BinaryIO, answer: bytes, follows: bytes) -> None:
    answers.write(b"%d %s\n" % (len(answer), follows) + answer)
    answers.flush()


# Parsing of files in a child process. A file that hangs, crashes or takes too much memory gives one clear error.

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
"""Each thread of a library takes address space; 64 threads take all that the child may have."""
_running: WeakSet[Child] = WeakSet()


def end_all() -> None:
    """Kill all child processes of this process. The files that they are reading get no answer."""
    for child in list(_running):
        child.kill()


class Child:
    """One child process for many files. It starts on first use, and again after it died."""

    def __init__(self, seconds: float = WALL_SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self.started: int = 0

    def answer(self, kind: str, data: bytes) -> bytes:
        """Return the packed result of parsing the bytes of a file, or the packed reason why they cannot be read.

        Raises:
            PassingError: the process died, or took too long.
        """
        process = self._running()
        exchange = _Exchange(process, kind, data)
        exchange.start()
        exchange.join(self._seconds)
        if exchange.is_alive():
            self.close()
            raise PassingError(f"took more than {self._seconds:g} s to read. Split it, or remove it")
        if exchange.answer is None:
            raise PassingError(self._death())
        if exchange.last:
            self.close()
        return exchange.answer

    def close(self) -> None:
        """End the process, and all processes that it has started."""
        if self._process is not None:
            end_python(self._process)
            self._process = None

    def kill(self) -> None:
        """Kill the process while another thread waits for its answer. That thread gets none."""
        process = self._process
        if process is not None and process.poll() is None:
            kill_python(process)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = start_python("rag_harness.data.loaders.child_process", "serve", _ONE_THREAD)
            _running.add(self)
            self.started += 1
        return self._process

    def _death(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)  # its output closes a moment before it ends, and it has a status only after its end
        end_python(process)
        if hasattr(signal, "SIGXCPU") and process.returncode == -signal.SIGXCPU:
            return f"took more than {PROCESSOR_SECONDS} s of the processor to read. Split it, or remove it"
        if hasattr(signal, "SIGABRT") and process.returncode == -signal.SIGABRT:  # as C and Rust abort without memory
            return f"takes more than {MEMORY_BYTES >> 20} MB of memory to read and cut, it seems. Split it"
        return f"ended the process that read it (status {process.returncode}). Remove it, or save it again"


class _Exchange(Thread):
    """A question and its answer, None without one. It is a thread, so that the caller can stop waiting."""

    def __init__(self, process: subprocess.Popen[bytes], kind: str, data: bytes) -> None:
        super().__init__(daemon=True, name="rag-ingest")
        self._process, self._question = process, b"%s %d\n" % (kind.encode(), len(data))
        self._data = data
        self.answer: bytes | None = None
        self.last = False

    def run(self) -> None:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        with suppress(OSError, ValueError):
            to.write(self._question)
            to.write(self._data)
            to.flush()
        with suppress(OSError, ValueError):
            self.answer = self._read(back)

    def _read(self, back: IO[bytes]) -> bytes | None:
        size, follows = back.readline(30).split()
        self.last = follows == b"last"
        answer = back.read(min(int(size), OUTPUT_BYTES))
        return answer if len(answer) == int(size) else None
