"""The collections of a server: documents of each tenant, the default folder, and reindexing."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from rag_harness.core.cache import check_room
from rag_harness.core.errors import RagHarnessError, UnreadableError
from rag_harness.core.log import log
from rag_harness.core.progress import give_back, uncollected
from rag_harness.core.protocols import Stores
from rag_harness.core.settings import Settings
from rag_harness.core.types import Document
from rag_harness.data.datasets import Data, DataSets, charset_of
from rag_harness.data.documents import language_of, pages_digest
from rag_harness.models.array_store import key_of
from rag_harness.pipelines.experiments import data_of
from rag_harness.service.app_state import AnswerLoop, Options
from rag_harness.service.corpus import document_table
from rag_harness.service.corpus.contents import (
    DEFAULT,
    CollectionStores,
    Contents,
    DocumentInfo,
    KeptTexts,
    LiveDocument,
    TokenStore,
    forget_unused,
)
from rag_harness.service.corpus.document_table import reconciled
from rag_harness.service.corpus.intake import (
    SPARE,
    Incoming,
    IngestThread,
    Loading,
    Part,
    checked_name,
    dropped_of,
    problem_of,
    read_upload,
    suffix_of,
    unreadable,
    without_half_characters,
)
from rag_harness.service.corpus.preparation import Prepared, Preparer, ServerModels
from rag_harness.service.corpus.search import Lasting, ServedExperiment, served_experiment, serving_of
from rag_harness.service.database import Database, StateFolder
from rag_harness.service.problems import ProblemError

# One collection: its documents, the answers about them, and all changes to them.
#
# A change is atomic because of the order of its steps. First a document is written as ``pending``, with its vectors.
# Then its points go into the index, where no question knows them. Then one transaction makes it ``ready`` and makes the
# document that it replaces ``deleting``, and one assignment shows this to questions. At last the old points and rows
# are removed. If the process is killed between two steps, the rows are still right, and the next start makes the index
# agree with them.

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
        self._contents = Contents(database.read(lambda c: document_table.ordered(c, number)))
        self.serving, _ = serving_of(wanted, lasting, self._contents, 0)

    def documents(self) -> list[DocumentInfo]:
        """Return the details of all documents: ready, pending, or failed in the last day."""
        return self._database.read(lambda c: document_table.shown(c, self.number))

    def document(self, doc_id: str) -> DocumentInfo:
        """Return the details of one document; KeyError if it does not exist."""
        found = self._database.read(lambda c: document_table.one(c, self.number, doc_id))
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
        row, doc_id = await self._database.write(lambda c: document_table.begin(c, self.number, name, size))
        try:
            return doc_id, self._intake.thread.submit(
                self.number, lambda: self._take_in(row, file, size, name, metadata)
            )
        except ProblemError:
            await self._database.write(lambda c: document_table.remove(c, [row]))
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
            _quietly(lambda: self._database.write_now(lambda c: document_table.fail(c, row, problem.detail)))
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

    def _change(self, held: Sequence[LiveDocument], arrivals: Sequence[Arrival]) -> list[DocumentInfo]:
        old = [self._contents.by_name[each.name] for each in held if each.name in self._contents.by_name]
        contents = self._contents.changed(add=held)
        serving, retrieval = serving_of(self._wanted, self._lasting, contents, self.serving.generation + 1)
        alike = [chunk.doc_id for chunk in retrieval.left_out]
        dropped = {each.row: _dropped(each, alike.count(each.document.doc_id)) for each in arrivals}
        files = {each.document.doc_id: each.digest for each in arrivals if each.digest}

        def ready(connection: sqlite3.Connection) -> list[DocumentInfo]:
            document_table.make_ready(connection, self.number, [each.row for each in held])
            document_table.set_dropped(connection, dropped)
            document_table.note_files(connection, self.number, files)
            # Read in this transaction: nothing can replace or delete the rows before, and an error undoes everything.
            return document_table.of_rows(connection, [each.row for each in held])

        done = self._database.write_now(ready)
        self._contents, self.serving = contents, serving
        self._clear(old)
        return done

    def _delete(self, doc_id: str) -> None:
        with self._changing:
            found = self._database.read(lambda c: document_table.status_of(c, self.number, doc_id))
            if found is None:
                raise KeyError(doc_id)
            row, status = found
            if status == "pending":
                raise ProblemError(409, "still_pending", "The document is being taken in. Delete it when it is there.")
            if status == "failed":
                info = self.document(doc_id)
                self._database.write_now(lambda c: document_table.remove(c, [row]))
                _quietly(lambda: self._forget_texts([info.name]))
                return
            self._without([each for each in self._contents.held if each.row == row])

    def _without(self, gone: Sequence[LiveDocument]) -> None:
        contents = self._contents.changed(remove=[each.row for each in gone])
        serving, _ = serving_of(self._wanted, self._lasting, contents, self.serving.generation + 1)
        self._database.write_now(lambda c: document_table.make_leave(c, [each.row for each in gone]))
        self._contents, self.serving = contents, serving
        self._clear(gone)

    def _clear(self, old: Sequence[LiveDocument]) -> None:
        """Remove what no question finds any more. If a step fails, the next start does it."""
        if not old:
            return
        _quietly(lambda: self._lasting.points.remove([point for each in old for point in each.points]))
        texts = {chunk.text for each in old for chunk in each.indexed}
        stay = {chunk.text for each in self._contents.held for chunk in each.indexed if chunk.text in texts}
        _quietly(lambda: self._tokens.remove([key_of("document", text) for text in texts - stay]))
        _quietly(lambda: self._forget_texts([each.name for each in old]))
        _quietly(lambda: self._database.write_now(lambda c: document_table.remove(c, [each.row for each in old])))

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


def _filled(
    connection: sqlite3.Connection, arrivals: Sequence[Arrival], prepared: Sequence[Prepared]
) -> list[LiveDocument]:
    return [
        document_table.held_of(each.row, made, document_table.fill(connection, each.row, made, each.dropped))
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


_BATCH = 256
"""How many documents are made ready at once. A start that is killed has to embed at most these again."""


class FolderDocuments:
    """Compares a folder with what was taken from it.

    A document that was deleted or replaced over HTTP stays so until its file changes.

    Args:
        settings: of the harness.
        folder: the folder of documents; None is the experiment's own data, which may have no folder.
        experiment: the experiment that is served.
    """

    def __init__(self, settings: Settings, folder: Path | None, experiment: str) -> None:
        self._settings, self._folder, self._experiment = settings, folder, experiment

    def bring(self, collection: TenantCollection, database: Database, part: Part) -> None:
        """Take in new and changed files, and remove documents whose files are gone. Uploads stay.

        Each batch is loaded in a block of ``part``.

        Raises:
            DataError: the folder is missing, or a file in it cannot be read.
            RecordingMissError, ModelCallError: a document cannot be embedded.
        """
        data = self._data()
        if self._folder is None and data.collection is None and not self._settings.path(data.folder).is_dir():
            log.info("There is no folder %s: the default collection is as it was", data.folder)
            return
        found = {document.doc_id: document for document in map(_whole, data.documents)}
        digests = {name: pages_digest([document]) for name, document in found.items()}
        number = collection.number
        taken, uploaded = database.read(lambda c: (document_table.files(c, number), document_table.uploads(c, number)))
        self._remove(collection, database, sorted(taken.keys() - found.keys()), uploaded)
        new = [name for name in found if taken.get(name) != digests[name] and name not in uploaded]
        for start in range(0, len(new), _BATCH):
            some = new[start : start + _BATCH]
            with part(start, len(some), len(new)):
                begun = database.write_now(_beginning(number, [found[name] for name in some]))
                collection.take_in(
                    [
                        Arrival(row, found[name], dropped_of(found[name]), digests[name])
                        for row, name in zip(begun, some, strict=True)
                    ]
                )
        log.info("%d documents of the folder, %d taken in", len(found), len(new))

    def _remove(
        self, collection: TenantCollection, database: Database, gone: Sequence[str], uploaded: set[str]
    ) -> None:
        collection.leave([name for name in gone if name not in uploaded])
        database.write_now(lambda c: document_table.forget_files(c, collection.number, gone))

    def _data(self) -> Data:
        if self._folder is None:
            return DataSets(self._settings).get(data_of(self._experiment, self._settings))
        return Data(replace(self._settings, kb_dir=str(self._folder.absolute()), dataset=""))


def _beginning(number: int, documents: Sequence[Document]) -> Callable[[sqlite3.Connection], list[int]]:
    return lambda c: [document_table.begin(c, number, each.doc_id, _size(each), "folder")[0] for each in documents]


def _whole(document: Document) -> Document:
    return replace(document, text=without_half_characters(document.text), title=without_half_characters(document.title))


def _size(document: Document) -> int:
    return len(document.text.encode("utf-8", "surrogatepass"))


# Cuts and embeds documents again if they were cut and embedded with other parts. Their text is kept.

_REINDEX_BATCH = 16
_UNFINISHED = "being made"


def remake(database: Database, collection: int, made_of: str, preparer: Preparer, part: Part) -> None:
    """Make the cuts and vectors of a collection by ``made_of``. After a killed start, the next one begins again.

    Args:
        database: the service's.
        collection: the number of the collection.
        made_of: everything that decides cuts and vectors.
        preparer: cuts and embeds.
        part: each batch is loaded in a block of it.

    Raises:
        RagHarnessError: a document cannot be embedded.
    """
    if database.read(lambda c: document_table.made_of(c, collection)) == made_of:
        return
    ready = database.read(lambda c: document_table.ready(c, collection))
    if ready:
        log.info(
            "%d documents of collection %d are cut and embedded again: other parts are served", len(ready), collection
        )
        database.write_now(lambda c: document_table.set_made_of(c, collection, _UNFINISHED))
    for start in range(0, len(ready), _REINDEX_BATCH):
        some = ready[start : start + _REINDEX_BATCH]
        with part(start, len(some), len(ready)):
            prepared = preparer.prepared([document for _, document in some])
            database.write_now(_writing([row for row, _ in some], prepared))
    database.write_now(lambda c: document_table.set_made_of(c, collection, made_of))


def _writing(numbers: Sequence[int], prepared: Sequence[Prepared]) -> Callable[[sqlite3.Connection], None]:
    def write(connection: sqlite3.Connection) -> None:
        for row, made in zip(numbers, prepared, strict=True):
            document_table.fill(connection, row, made, document_table.dropped_of(connection, row))

    return write


_DAYS_FAILED = 1


class Corpora:
    """The collections of a server, by name. ``open`` it first, ``close`` it at the end.

    Args:
        settings: of the harness: models, profile, mode.
        options: of the server.
        experiment_name: the experiment that is served.
        state: the state folder.
        told: called with the seconds and the success of each uploaded document.
    """

    def __init__(
        self,
        settings: Settings,
        options: Options,
        experiment_name: str,
        state: StateFolder,
        told: Callable[[float, bool], None] = lambda _seconds, _ok: None,
    ) -> None:
        self._settings, self._options, self._state, self._told = settings, options, state, told
        self._experiment = experiment_name
        self.loading: Loading = Loading()
        self.answers: AnswerLoop = AnswerLoop()
        self._thread = IngestThread()
        self._collections: dict[str, TenantCollection] = {}
        self._creating = asyncio.Lock()

    async def open(self) -> None:
        """Open every collection. Afterwards each index agrees with the database, and the default one has its folder.

        Raises:
            RagHarnessError: says what is wrong, and what to do.
        """
        with uncollected():
            await asyncio.to_thread(self._open)
        # Objects that exist now stay. The garbage collector need not look through them again.
        gc.freeze()

    def get(self, name: str) -> TenantCollection:
        """Return the collection ``name``; KeyError if it does not exist."""
        return self._collections[name]

    async def create(self, name: str) -> TenantCollection:
        """Return the collection ``name``; it is made if it does not exist."""
        async with self._creating:
            if name not in self._collections:
                number = await self._state.database.write(lambda c: document_table.collection(c, name))
                self._collections[name] = await asyncio.to_thread(self._opened, name, number)
            return self._collections[name]

    async def close(self) -> bool:
        """Close every index and the connections of every model. A document that is being taken in gets 2 s.

        Return False if it was not done in that time. Then everything is left open until the process ends.
        """
        if not await asyncio.to_thread(self._thread.close):
            return False
        await asyncio.to_thread(self._close)
        await self.answers.close(self._models.endpoints.aclose)
        return True

    def _open(self) -> None:
        self._models = ServerModels(self._settings)
        # Limits and connections belong to the loop. A document that needs a model waits for it in its thread.
        self._models.parts.loop = self._called
        self._wanted: ServedExperiment = served_experiment(self._experiment, self._models)
        self._models.load(self._wanted.ways[0].spec.embedder)
        self._incoming = Incoming(self._state.incoming)
        database = self._state.database
        database.write_now(lambda c: document_table.collection(c, DEFAULT))
        for name, number in database.read(document_table.collections).items():
            self._collections[name] = self._opened(name, number)
        FolderDocuments(self._settings, self._options.kb, self._experiment).bring(
            self._collections[DEFAULT], self._state.database, self.loading.part
        )
        for collection in self._collections.values():
            collection.complete()

    def _called(self, calls: Coroutine[Any, Any, Any]) -> Any:
        return self._thread.result(asyncio.run_coroutine_threadsafe(calls, self.answers.started()))

    def _opened(self, name: str, number: int) -> TenantCollection:
        database, folder = self._state.database, self._state.of_collection(number)
        oldest = (datetime.now(timezone.utc) - timedelta(days=_DAYS_FAILED)).strftime("%Y-%m-%dT%H:%M:%SZ")
        database.write_now(lambda c: document_table.settle(c, number, oldest))
        database.write_now(lambda c: forget_unused(c, number, oldest))
        recorded: Stores | None = self._models.recorded(cached=name == DEFAULT)
        inner = self._models.embedder(self._wanted.ways[0].spec.embedder, ingests=True)
        tokens = TokenStore(folder / "tokens.sqlite3", f"{inner.model}@{inner.revision}")
        texts = KeptTexts(database, number, self._thread.check)
        preparer = Preparer(self._models, self._wanted.ways, recorded, tokens, texts, self._thread.check)
        remake(database, number, self._wanted.made_of, preparer, self.loading.part)
        points = reconciled(
            self._settings,
            self._wanted.ways[0].spec.index,
            folder,
            self._server_name(number),
            database.read(lambda c: document_table.ready_points(c, number)),
            lambda some: database.read(lambda c: document_table.vectors(c, some)),
        )
        lasting = Lasting(self._models, CollectionStores(recorded, {"tokens": tokens}), points)
        settings = self._settings
        by = charset_of(settings), language_of(settings)
        intake = Intake(self._incoming, self._thread, preparer, self._told, *by)
        return TenantCollection(name, number, database, self._wanted, lasting, tokens, intake)

    def _server_name(self, number: int) -> str:
        """Return the collection's name on a Qdrant server, which others may use, too."""
        return f"rag_service_{self._state.database.read(document_table.state_id)}_{number}"

    def _close(self) -> None:
        for name, collection in self._collections.items():
            try:
                collection.close()
            except Exception:
                log.warning("The index of %r could not be closed", name, exc_info=True)
        self._collections.clear()
