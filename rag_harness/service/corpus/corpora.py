"""All collections of a server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta, timezone
from typing import Any

from rag_harness.dataset.data import charset_of
from rag_harness.dataset.document_languages import language_of
from rag_harness.files.log import log
from rag_harness.protocols import Stores
from rag_harness.service.answer_loop import AnswerLoop
from rag_harness.service.corpus import document_rows
from rag_harness.service.corpus.folder_documents import FolderDocuments
from rag_harness.service.corpus.incoming import Incoming
from rag_harness.service.corpus.ingest_thread import IngestThread
from rag_harness.service.corpus.kept_texts import KeptTexts, forget_unused
from rag_harness.service.corpus.loading import Loading
from rag_harness.service.corpus.making import ServedExperiment, served_experiment
from rag_harness.service.corpus.models import ServerModels
from rag_harness.service.corpus.preparing import Preparer
from rag_harness.service.corpus.reconciling import reconciled
from rag_harness.service.corpus.remaking import remake
from rag_harness.service.corpus.serving import DEFAULT
from rag_harness.service.corpus.serving_parts import Lasting
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.service.corpus.tenant_collection import Intake, TenantCollection
from rag_harness.service.corpus.token_store import TokenStore
from rag_harness.service.options import Options
from rag_harness.service.state.folder import StateFolder
from rag_harness.settings import Settings
from rag_harness.work.garbage import uncollected

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
                number = await self._state.database.write(lambda c: document_rows.collection(c, name))
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
        database.write_now(lambda c: document_rows.collection(c, DEFAULT))
        for name, number in database.read(document_rows.collections).items():
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
        database.write_now(lambda c: document_rows.settle(c, number, oldest))
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
            database.read(lambda c: document_rows.ready_points(c, number)),
            lambda some: database.read(lambda c: document_rows.vectors(c, some)),
        )
        lasting = Lasting(self._models, CollectionStores(recorded, {"tokens": tokens}), points)
        settings = self._settings
        by = charset_of(settings), language_of(settings)
        intake = Intake(self._incoming, self._thread, preparer, self._told, *by)
        return TenantCollection(name, number, database, self._wanted, lasting, tokens, intake)

    def _server_name(self, number: int) -> str:
        """Return the collection's name on a Qdrant server, which others may use, too."""
        return f"rag_service_{self._state.database.read(document_rows.state_id)}_{number}"

    def _close(self) -> None:
        for name, collection in self._collections.items():
            try:
                collection.close()
            except Exception:
                log.warning("The index of %r could not be closed", name, exc_info=True)
        self._collections.clear()
