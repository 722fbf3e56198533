"""One collection: its documents, the answers about them, and all changes to them.

A change is atomic because of the order of its steps. First a document is written as ``pending``, with its vectors. Then
its points go into the index, where no question knows them. Then one transaction makes it ``ready`` and makes the
document that it replaces ``deleting``, and one assignment shows this to questions. At last the old points and rows are
removed. If the process is killed between two steps, the rows are still right, and the next start makes the index agree
with them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from rag_harness.errors import RagHarnessError, UnreadableError
from rag_harness.files.log import log
from rag_harness.files.room import check_room
from rag_harness.models.recording.store import key_of
from rag_harness.service.corpus import document_rows
from rag_harness.service.corpus.contents import Contents, Held
from rag_harness.service.corpus.document_names import checked_name, suffix_of
from rag_harness.service.corpus.incoming import SPARE, Incoming
from rag_harness.service.corpus.ingest_thread import IngestThread
from rag_harness.service.corpus.making import ServedExperiment, serving_of
from rag_harness.service.corpus.preparing import Prepared, Preparer
from rag_harness.service.corpus.refusals import problem_of
from rag_harness.service.corpus.serving import DocumentInfo
from rag_harness.service.corpus.serving_parts import Lasting
from rag_harness.service.corpus.token_store import TokenStore
from rag_harness.service.corpus.uploads import read_upload, unreadable
from rag_harness.service.problems import ProblemError
from rag_harness.service.state.database import Database
from rag_harness.types import Document
from rag_harness.work.garbage import give_back

_LARGE = 1 << 20
"""From how many bytes of a file on memory is given back. That takes a tenth of a second, too much for small files."""
_TOGETHER = 8
"""How many chunks get their token vectors between two documents."""


@dataclass(frozen=True)
class Arrival:
    """A document that was read: its row, the counts of what reading left out, and its digest if a folder had it."""

    row: int
    document: Document
    dropped: dict[str, int] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class Intake:
    """What takes a document in: the folder where its file waits, the thread, and the preparer that cuts and embeds.

    ``told`` is called with each document's seconds and success. ``charset`` is used for files that name none,
    ``language`` for documents that state none.
    """

    incoming: Incoming
    thread: IngestThread
    preparer: Preparer
    told: Callable[[float, bool], None] = lambda _seconds, _ok: None
    charset: str = ""
    language: str = "auto"


class TenantCollection:
    """The documents of one tenant. Made by ``Corpora``.

    Args:
        name: its name, as keys have it.
        number: the number of its row.
        database: the service's.
        wanted: the experiment that is served.
        lasting: models, stores and index of the collection.
        tokens: token vectors of its documents.
        intake: takes documents in.
    """

    def __init__(
        self,
        name: str,
        number: int,
        database: Database,
        wanted: ServedExperiment,
        lasting: Lasting,
        tokens: TokenStore,
        intake: Intake,
    ) -> None:
        self.name: str = name
        self.number: int = number
        self._database, self._wanted, self._lasting = database, wanted, lasting
        self._tokens, self._intake = tokens, intake
        self._changing = Lock()
        self._contents = Contents(database.read(lambda c: document_rows.ordered(c, number)))
        self.serving, _ = serving_of(wanted, lasting, self._contents, 0)

    def documents(self) -> list[DocumentInfo]:
        """Return the details of all documents: ready, pending, or failed in the last day."""
        return self._database.read(lambda c: document_rows.shown(c, self.number))

    def document(self, doc_id: str) -> DocumentInfo:
        """Return the details of one document; KeyError if it does not exist."""
        found = self._database.read(lambda c: document_rows.one(c, self.number, doc_id))
        if found is None:
            raise KeyError(doc_id)
        return found

    async def ingest(self, name: str, file: Path | bytes, metadata: Mapping[str, Any] | None = None) -> DocumentInfo:
        """Take a document in, and return when it can be found. It replaces the document of that name, if there is one.

        Args:
            name: its name in citations.
            file: its bytes, or a file, which is moved away.
            metadata: overrides what the loader found.

        Raises:
            ProblemError: the name, the file or its kind cannot be taken, or too much is waiting.
        """
        # The client may leave. The document is taken in all the same.
        _, done = await asyncio.shield(self._started(name, file, metadata or {}))
        return await asyncio.shield(asyncio.wrap_future(done))

    async def start_ingest(self, name: str, file: Path | bytes, metadata: Mapping[str, Any] | None = None) -> str:
        """Begin to take a document in, and return its id for ``document``. A later failure is shown in its details."""
        doc_id, done = await asyncio.shield(self._started(name, file, metadata or {}))
        done.add_done_callback(lambda each: each.cancelled() or each.exception())
        return doc_id

    async def delete(self, doc_id: str) -> None:
        """Remove a document: no later question finds it. KeyError if it does not exist.

        Raises:
            ProblemError: the document is still being taken in.
        """
        await asyncio.shield(asyncio.to_thread(self._delete, doc_id))

    async def _started(
        self, name: str, file: Path | bytes, metadata: Mapping[str, Any]
    ) -> tuple[str, Future[DocumentInfo]]:
        called = checked_name(name)
        suffix = suffix_of(called)
        try:
            taken, size = await asyncio.to_thread(self._intake.incoming.take, file, suffix)
        except OSError as error:
            raise problem_of(error) from error
        try:
            return await self._queued(called, taken, size, metadata)
        except Exception as error:
            taken.unlink(missing_ok=True)
            raise problem_of(error) from error

    async def _queued(
        self, name: str, file: Path, size: int, metadata: Mapping[str, Any]
    ) -> tuple[str, Future[DocumentInfo]]:
        row, doc_id = await self._database.write(lambda c: document_rows.begin(c, self.number, name, size))
        try:
            return doc_id, self._intake.thread.submit(
                self.number, lambda: self._take_in(row, file, size, name, metadata)
            )
        except ProblemError:
            await self._database.write(lambda c: document_rows.remove(c, [row]))
            raise

    def _take_in(self, row: int, file: Path, size: int, name: str, metadata: Mapping[str, Any]) -> DocumentInfo:
        began, ok = perf_counter(), False
        try:
            info = self._read_and_taken_in(row, file, name, metadata)
            ok = True
            return info
        except BaseException as error:
            problem = self._problem_of(error)
            log.info("Document %d did not come in: %s", row, problem.code)
            _quietly(lambda: self._database.write_now(lambda c: document_rows.fail(c, row, problem.detail)))
            # A traceback would keep the document in memory as long as the error is kept.
            raise problem.with_traceback(None) from None
        finally:
            file.unlink(missing_ok=True)
            self._intake.told(perf_counter() - began, ok)
            if size > _LARGE:
                give_back()

    def _read_and_taken_in(self, row: int, file: Path, name: str, metadata: Mapping[str, Any]) -> DocumentInfo:
        document, dropped = read_upload(file, name, metadata, self._intake.charset, self._intake.language)
        self._intake.thread.check()
        return self.take_in([Arrival(row, document, dropped)])[0]

    def _problem_of(self, error: BaseException) -> ProblemError:
        try:
            self._intake.thread.check()
        except ProblemError as stopped:  # the step failed only because its process was ended
            return stopped
        return problem_of(error)

    def take_in(self, arrivals: Sequence[Arrival]) -> list[DocumentInfo]:
        """Make read documents ready, all at once. Runs in the ingest thread, or before that thread starts."""
        folder = self._intake.incoming.folder
        # At most four bytes a character, three times: read once, written to SQLite's log, written to its file.
        text = 12 * sum(len(each.document.text) for each in arrivals)
        check_room(folder, SPARE + text)
        prepared = self._intake.preparer.prepared([each.document for each in arrivals])
        _refuse_empty(arrivals, prepared, self._intake.preparer.skips)
        # The vectors are written twice by SQLite and twice by the index.
        check_room(folder, SPARE + text + 5 * sum(each.vectors.nbytes for each in prepared))
        held = self._database.write_now(lambda c: _filled(c, arrivals, prepared))
        points = [point for each in held for point in each.points]
        try:
            for each, made in zip(held, prepared, strict=True):
                self._lasting.points.add(each.points, made.vectors)
            with self._changing:
                return self._change(held, arrivals)
        except BaseException:
            _quietly(lambda: self._lasting.points.remove(points))
            raise

    def complete(self) -> None:
        """Prepare for many questions: tidy the index, and compute missing token vectors between documents."""
        self._lasting.points.tidy()
        texts = [chunk.text for held in self._contents.held for chunk in held.chunks]
        missing = self._intake.preparer.without_tokens(texts)
        if missing:
            log.info("%d chunks of collection %d lack token vectors", len(missing), self.number)
            self._complete(missing)

    def _complete(self, texts: list[str]) -> None:
        def some() -> None:
            _quietly(lambda: self._intake.preparer.add_tokens(texts[:_TOGETHER]))
            if texts[_TOGETHER:]:
                self._complete(texts[_TOGETHER:])

        # If too much waits, or the server ends, the rest is left to the next start.
        with suppress(ProblemError):
            self._intake.thread.submit(self.number, some)

    def leave(self, names: Iterable[str]) -> None:
        """Remove the documents with these names, all at once. Unknown names are ignored."""
        with self._changing:
            gone = [self._contents.by_name[name] for name in names if name in self._contents.by_name]
            if gone:
                self._without(gone)

    def _change(self, held: Sequence[Held], arrivals: Sequence[Arrival]) -> list[DocumentInfo]:
        old = [self._contents.by_name[each.name] for each in held if each.name in self._contents.by_name]
        contents = self._contents.changed(add=held)
        serving, retrieval = serving_of(self._wanted, self._lasting, contents, self.serving.generation + 1)
        alike = [chunk.doc_id for chunk in retrieval.left_out]
        dropped = {each.row: _dropped(each, alike.count(each.document.doc_id)) for each in arrivals}
        files = {each.document.doc_id: each.digest for each in arrivals if each.digest}

        def ready(connection: sqlite3.Connection) -> list[DocumentInfo]:
            document_rows.make_ready(connection, self.number, [each.row for each in held])
            document_rows.set_dropped(connection, dropped)
            document_rows.note_files(connection, self.number, files)
            # Read in this transaction: nothing can replace or delete the rows before, and an error undoes everything.
            return document_rows.of_rows(connection, [each.row for each in held])

        done = self._database.write_now(ready)
        self._contents, self.serving = contents, serving
        self._clear(old)
        return done

    def _delete(self, doc_id: str) -> None:
        with self._changing:
            found = self._database.read(lambda c: document_rows.status_of(c, self.number, doc_id))
            if found is None:
                raise KeyError(doc_id)
            row, status = found
            if status == "pending":
                raise ProblemError(409, "still_pending", "The document is being taken in. Delete it when it is there.")
            if status == "failed":
                info = self.document(doc_id)
                self._database.write_now(lambda c: document_rows.remove(c, [row]))
                _quietly(lambda: self._forget_texts([info.name]))
                return
            self._without([each for each in self._contents.held if each.row == row])

    def _without(self, gone: Sequence[Held]) -> None:
        contents = self._contents.changed(remove=[each.row for each in gone])
        serving, _ = serving_of(self._wanted, self._lasting, contents, self.serving.generation + 1)
        self._database.write_now(lambda c: document_rows.make_leave(c, [each.row for each in gone]))
        self._contents, self.serving = contents, serving
        self._clear(gone)

    def _clear(self, old: Sequence[Held]) -> None:
        """Remove what no question finds any more. If a step fails, the next start does it."""
        if not old:
            return
        _quietly(lambda: self._lasting.points.remove([point for each in old for point in each.points]))
        texts = {chunk.text for each in old for chunk in each.indexed}
        stay = {chunk.text for each in self._contents.held for chunk in each.indexed if chunk.text in texts}
        _quietly(lambda: self._tokens.remove([key_of("document", text) for text in texts - stay]))
        _quietly(lambda: self._forget_texts([each.name for each in old]))
        _quietly(lambda: self._database.write_now(lambda c: document_rows.remove(c, [each.row for each in old])))

    def _forget_texts(self, names: Iterable[str]) -> None:
        for name in names:
            held = self._contents.by_name.get(name)
            further = held.cuts[1:] if held else ()
            self._intake.preparer.texts.forget(name, [chunk.text for cut in further for chunk in cut.chunks])

    def close(self) -> None:
        """Close the index and the files."""
        with self._changing:
            self._lasting.points.close()
            self._tokens.close()


def _filled(connection: sqlite3.Connection, arrivals: Sequence[Arrival], prepared: Sequence[Prepared]) -> list[Held]:
    return [
        document_rows.held_of(each.row, made, document_rows.fill(connection, each.row, made, each.dropped))
        for each, made in zip(arrivals, prepared, strict=True)
    ]


def _refuse_empty(arrivals: Sequence[Arrival], prepared: Sequence[Prepared], skips: bool) -> None:
    for arrival, each in zip(arrivals, prepared, strict=True):
        why = each.refused or "no chunk can be made of its text"
        if not each.chunks and not arrival.digest:
            raise unreadable(why)
        if each.refused and not skips:
            why = f"{each.refused}. Or start without it: --rag-unreadable=skip"
            raise UnreadableError(f"{arrival.document.doc_id} of the folder: {why}")
        if not each.chunks:
            # A test run over the folder reads this page, too. One empty page must not keep a server from starting.
            log.warning("No question finds %s of the folder: %s", arrival.document.doc_id, why)


def _dropped(arrival: Arrival, alike: int) -> dict[str, int]:
    return {**arrival.dropped, "near_duplicates": alike} if alike else arrival.dropped


def _quietly(work: Any) -> None:
    try:
        work()
    except Exception as error:  # any error: the change itself is done and stays
        is_known = isinstance(error, (RagHarnessError, OSError, sqlite3.Error))
        left = "Something that no question finds is left until the next start: %s"
        log.warning(left, error, exc_info=None if is_known else error)
