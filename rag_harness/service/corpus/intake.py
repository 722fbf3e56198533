"""The intake of documents: uploads, their names, the thread that reads them, and reasons to refuse them."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from rag_harness.core.cache import NO_ROOM
from rag_harness.core.errors import (
    ChunkTooLongError,
    DataError,
    ModelCallError,
    NoRoomError,
    PrerequisiteError,
    RagHarnessError,
    RecordingMissError,
    UnreadableError,
)
from rag_harness.core.log import log
from rag_harness.core.progress import ProgressText, listening
from rag_harness.core.types import Document
from rag_harness.data.documents import AUTO, is_readable, kinds, load, with_languages
from rag_harness.data.loaders.child_process import end_all, unread_parts
from rag_harness.data.loaders.reading import reading
from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.service.corpus.contents import TextsNotMadeError
from rag_harness.service.database import StateError
from rag_harness.service.problems import ProblemError, no_room, unseen_fault

# The one thread of a server that takes documents in, one at a time; a limited number may wait.

_T = TypeVar("_T")
MOST_WAITING = 32
"""How many documents may wait, of all collections. Above it, each collection may still have one."""
MOST_OF_ONE = 16
"""How many documents of one collection may wait, so that others have room."""
_NICE = 19
"""Lowers the thread's priority, so that questions go first on a busy processor. Only Linux can do so by thread.

A document still comes in while all cores answer, but slowly: docs/dev/results/service.md has both sides.
"""
_LOOKS_EVERY = 0.1
"""How often a wait for models looks whether the server is being stopped, in seconds."""
_Job = tuple[Callable[[], Any], "Future[Any]"]


class IngestThread:
    """Does the waiting work, one document of each collection in turn. It starts with the first work.

    New work waits for at most one document of each other collection, however many of those wait.
    """

    def __init__(self, most: int = MOST_WAITING, of_one: int = MOST_OF_ONE) -> None:
        self._most, self._of_one = most, of_one
        self._waiting: OrderedDict[int, deque[_Job]] = OrderedDict()
        self._at_work: int | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends = self._hurries = False

    def submit(self, collection: int, work: Callable[[], _T]) -> Future[_T]:
        """Queue ``work`` for a collection.

        Raises:
            ProblemError: too much is waiting.
        """
        future: Future[_T] = Future()
        with self._changed:
            if self._ends:
                raise _stopped()
            own = len(self._waiting.get(collection, ())) + (collection == self._at_work)
            if own >= self._of_one:
                raise _busy(429, "Your collection has too many documents waiting to be taken in")
            if own and sum(map(len, self._waiting.values())) >= self._most:
                raise _busy(503, "Too many documents are waiting to be taken in")
            self._waiting.setdefault(collection, deque()).append((work, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rag-service-ingest", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def check(self) -> None:
        """Check between two steps of a document that it may go on.

        Raises:
            ProblemError: the server is being stopped.
        """
        if self._hurries:
            raise _stopped()

    def result(self, calls: Future[_T]) -> _T:
        """Wait for calls of models that a document needs, and return their result.

        Raises:
            ProblemError: the server is being stopped, and the calls are given up.
        """
        while not wait([calls], _LOOKS_EVERY).done:
            try:
                self.check()
            except ProblemError:
                calls.cancel()
                raise
        return calls.result()

    def close(self, seconds: float = 1.0) -> bool:
        """End the waiting work and the current work; return whether all ended within twice ``seconds``.

        The current document has ``seconds`` to finish. Then the process that reads or cuts it is killed, and the work
        ends after its current step.
        """
        with self._changed:
            self._ends = True
            waiting = [future for jobs in self._waiting.values() for _, future in jobs]
            self._waiting.clear()
            self._changed.notify()
        for future in waiting:
            future.cancel()
        if self._thread is None:
            return True
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._hurries = True
            end_all()
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (job := self._next()) is not None:
            work, future = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)

    def _next(self) -> _Job | None:
        with self._changed:
            self._at_work = None
            while not self._waiting:
                if self._ends:
                    return None
                self._changed.wait()
            self._at_work, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            if jobs:  # after all others
                self._waiting[self._at_work] = jobs
            return job


def _stopped() -> ProblemError:
    return ProblemError(503, "server_stops", "This server is being stopped. Send it again later.")


def _busy(status: int, what: str) -> ProblemError:
    return ProblemError(status, "ingest_busy", f"{what}. Send it again in 10 s.", headers={"Retry-After": "10"})


# From the bytes of an upload to a document. The file has a random name, and is read in a process with limits.


def read_upload(
    file: Path, name: str, metadata: Mapping[str, Any], charset: str = "", language: str = AUTO
) -> tuple[Document, dict[str, int]]:
    """Return the document in ``file``, under ``name``, and the counts of what reading left out, by reason.

    Each file is read in its own process, so it cannot see what another file left. ``language`` is that of all documents
    that state none; what is too short to tell counts as English.

    Raises:
        ProblemError: the file cannot be read, or has no text.
    """
    try:
        with reading(charset=charset):
            document = load(file, name)
    except UnicodeDecodeError as error:
        raise unreadable(f"not UTF-8 at byte {error.start}. Save the file as UTF-8") from error
    except DataError as error:
        raise unreadable(str(error).rstrip(".")) from error
    except PrerequisiteError as error:
        log.warning("Uploads of %s cannot be read: %s", file.suffix, error)
        raise ProblemError(
            503, "loader_missing", f"This server lacks what reads {file.suffix} files. Send it as text."
        ) from error
    except OSError:
        raise
    except Exception as error:  # a loader of the user may raise anything
        log.warning("The loader of %s failed", file.suffix, exc_info=True)
        raise unreadable(f"its loader failed: {type(error).__name__}") from error
    named = _with(with_name(document, file, name), metadata)
    return with_languages([named], language)[0], dropped_of(document)


def with_name(document: Document, file: Path, name: str) -> Document:
    """Return the document under its name: no trace of the random name, no half characters."""
    title = PurePosixPath(name).stem if document.title == file.stem else document.title
    text = without_half_characters(document.text)
    if not text.strip():
        raise unreadable("it holds no text")
    return replace(document, text=text, title=without_half_characters(title))


def without_half_characters(text: str) -> str:
    """Return ``text`` with a mark for each lone half of a character, since no database stores such halves."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("�" if "\ud800" <= each <= "\udfff" else each for each in text)
    return text


def _with(document: Document, metadata: Mapping[str, Any]) -> Document:
    title = without_half_characters(str(metadata.get("title") or document.title))
    return replace(document, title=title, metadata={**document.metadata, **metadata})


def dropped_of(document: Document) -> dict[str, int]:
    """Return the counts of what reading left out, by reason."""
    about = document.metadata
    pages = about.get("unread_pages", ())
    counted = {
        "hidden_characters": about.get("hidden_characters", 0),
        "unread_pages": len(pages) if isinstance(pages, (list, tuple)) else 0,
        "unread_parts": len(unread_parts(document)),
    }
    return {reason: count for reason, count in counted.items() if isinstance(count, int) and count}


def unreadable(why: str) -> ProblemError:
    """Return the problem of a file from which no document can be made."""
    return ProblemError(422, "unreadable", f"The file cannot be read: {why}.")


# Uploaded files that wait to be read, in the state folder under random names. Their own names are not used here.

SPARE = 16 << 20
"""Bytes of the disk that documents may not use: the server needs them to go on, to end and to start again."""


class Incoming:
    """A folder of waiting files.

    Args:
        folder: of the state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, file: Path | bytes, suffix: str) -> tuple[Path, int]:
        """Take over a file, or write bytes; return the file's place and length.

        Raises:
            OSError: the file cannot be written; nothing of it is left.
        """
        place = self.folder / f"{uuid4().hex}{suffix}"
        try:
            if isinstance(file, bytes):
                place.write_bytes(file)
            else:
                shutil.move(file, place)
            return place, place.stat().st_size
        except OSError:
            place.unlink(missing_ok=True)
            raise


# The names of uploaded documents. They are shown and compared, and never become paths.

LONGEST_NAME = 255
"""The most characters of a name."""


def checked_name(name: str) -> str:
    """Return a name in Unicode's form NFC.

    Raises:
        ProblemError: it is empty or too long, or has invisible characters or segments such as "..".
    """
    normal = unicodedata.normalize("NFC", name)
    fault = _fault(normal)
    if fault:
        raise ProblemError(422, "bad_name", f"The file's name {fault}. Send the file under another name.")
    return normal


def suffix_of(name: str) -> str:
    """Return the suffix that decides how a file is read, in lower case.

    Raises:
        ProblemError: no loader reads such files; the message names the suffixes that can be read.
    """
    path = PurePosixPath(name)
    # Reading a folder skips some names, such as README.md. Here the file was sent on purpose, so only the suffix
    # counts.
    if not is_readable(Path(f"document{path.suffix}")):
        raise ProblemError(
            415,
            "kind_not_read",
            f"Files of kind {path.suffix or 'without a suffix'!r} are not read. Send one of {kinds()}; the suffix of "
            f"the name decides, and Content-Type does not.",
        )
    return path.suffix.lower()


def _fault(name: str) -> str:
    if fault := unseen_fault(name):
        return fault
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, and {LONGEST_NAME} are the most"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "has an empty segment, or one of dots"
    if any(unseen_fault(PurePosixPath(part).stem) for part in name.split("/")):
        return "has a segment that cannot be seen"
    return ""


# How many documents of a start are loaded, for those who wait for it.

Part = Callable[[int, int, int], AbstractContextManager[None]]
"""(documents before it, its documents, all documents) -> a block in which this part is loaded."""
_LOGGED_EVERY = 10.0
"""Seconds."""


class Loading:
    """Counts the documents that are loaded. One thread loads them, others read ``text``."""

    def __init__(self) -> None:
        self._work = ProgressText()
        self._logged = monotonic()

    @property
    def text(self) -> str:
        """How far it is: ``loading 48/100 documents, 1.5/s, 0:40 left``; empty where nothing was counted yet."""
        return self._work.text()

    @contextmanager
    def part(self, before: int, size: int, of: int) -> Iterator[None]:
        """Load some of the documents. They are embedded together, so the share of their chunks counts."""

        def hear(what: str, done: int, total: int, unit: str) -> None:
            if (what, unit) == ("embedding", "chunks"):
                self._at(before + size * done // max(total, 1), of)

        self._at(before, of)
        with listening(hear):
            yield
        self._at(before + size, of)

    def _at(self, done: int, total: int) -> None:
        self._work.hear("loading", done, total, "documents")
        if done < total and monotonic() - self._logged >= _LOGGED_EVERY:
            self._logged = monotonic()
            log.info("Still %s", self.text)


# Why a document was not taken in, in words for its sender. Nothing is said of this server or of other tenants.


def problem_of(error: BaseException) -> ProblemError:
    """Return the problem that a client is told for an error of an ingest."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, (ChunkTooLongError, UnreadableError)):
        return _too_long(error)
    if isinstance(error, (RecordingMissError, PrerequisiteError, ModelCallError, TextsNotMadeError)):
        return _without_a_model(error)
    if _is_full(error):
        log.error("No room for a document: %s", error)
        return no_room()
    log.error("A document could not be taken in", exc_info=error)
    return ProblemError(500, "ingest_failed", "The document could not be taken in; the server's log says why.")


def _too_long(error: RagHarnessError) -> ProblemError:
    if isinstance(error, UnreadableError):
        return ProblemError(422, "unreadable", f"The file cannot be read: {error}.")
    return ProblemError(422, "chunk_too_long", "A part of the document is longer than the embedding model reads.")


def _without_a_model(error: RagHarnessError) -> ProblemError:
    log.warning("A document cannot be taken in: %s", error)
    if isinstance(error, TextsNotMadeError):
        detail = "What writes other texts of a document, summaries say, did not: the server's log says why."
        return ProblemError(503, "texts_not_made", f"{detail} What it wrote is kept. Send the document again later.")
    if isinstance(error, ModelCallError):
        return ProblemError(503, "embedding_failed", "The embedding model does not answer. Send it again later.")
    return ProblemError(
        503,
        "cannot_embed",
        "This server cannot embed: it plays back what was recorded, or its embedding model is not installed.",
    )


def _is_full(error: BaseException) -> bool:
    if isinstance(error, NoRoomError):
        return True
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    # The engine and SQLite give the reason only as text.
    said = str(error).lower()
    ours = isinstance(error, (StateError, LiveIndexError)) or not isinstance(error, RagHarnessError)
    return ours and any(word in said for word in ("full", "no space", "disk i/o error"))
