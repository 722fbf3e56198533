"""The application over documents that stay as they are, in process: for tests of what goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Document
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.service.app_state import Options, Service
from rag_harness.service.corpus.contents import DEFAULT, DocumentInfo, Serving
from rag_harness.service.database import StateFolder
from rag_harness.service.monitoring import Metrics
from rag_harness.service.server import create_app
from rag_harness.service.traces import Traces

PAGES = {
    "lamps.md": "# Lamps\n\nLamps can be returned within 45 days. Batteries cannot be returned at all.\n",
    "shipping.md": "# Shipping\n\nExpress delivery costs 9.90 euros. Standard delivery takes 3 working days.\n",
}


@dataclass
class Fixed:
    """A collection that nobody changes."""

    serving: Serving
    name: str = DEFAULT
    taken: list[tuple[str, bytes, Mapping[str, Any]]] = field(default_factory=list)

    def documents(self) -> list[DocumentInfo]:
        return []

    def document(self, doc_id: str) -> DocumentInfo:
        raise KeyError(doc_id)

    async def ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> DocumentInfo:
        self.taken.append((name, file.read_bytes(), metadata))
        return DocumentInfo("doc_1", name, "ready", "", 1, {}, 1.0, file.stat().st_size, "2026-01-01T00:00:00Z")

    async def start_ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> str:
        raise NotImplementedError

    async def delete(self, doc_id: str) -> None:
        raise KeyError(doc_id)


@dataclass
class FixedCollections:
    """The one collection of a test."""

    one: Fixed
    progress: str = ""

    def get(self, name: str) -> Fixed:
        if name != self.one.name:
            raise KeyError(name)
        return self.one

    async def create(self, name: str) -> Fixed:
        return self.get(name)


def serving_of(folder: Path, name: str = "e3", **changes: Any) -> Serving:
    """Return what answers from ``PAGES`` with the models of profile mock."""
    (folder / "kb").mkdir(exist_ok=True)
    for page, text in PAGES.items():
        (folder / "kb" / page).write_text(text, encoding="utf-8")
    parts = RunParts(load_settings({"profile": "mock", **changes}, {"kb_dir": "kb"}, folder))
    documents = {document.doc_id: document for document in parts.data().documents}
    return Serving(experiment(name, parts), None, documents.__getitem__, 1)


def said_by(pipeline: Any) -> Serving:
    """Return what a pipeline of a test's own says of ``PAGES``."""
    documents = {page: Document(page, text, page) for page, text in PAGES.items()}
    return Serving(Experiment("e3", pipeline), None, documents.__getitem__, 1)


async def _nothing() -> None:
    """A test's models have no connections."""


@contextmanager
def made_app(
    folder: Path, serving: Serving, at_last: Callable[[], Coroutine[Any, Any, None]] = _nothing, **options: Any
) -> Iterator[tuple[FastAPI, Service]]:
    """Give the application, which whoever serves it starts. ``at_last`` is run at its end, where answers were made."""
    made = Options(serving.experiment.id, **{"state": folder / "state", **options})
    with StateFolder(made.state) as state:
        traces = Traces(state.database, made.trace_days, made.trace_content)
        service = Service(made, FixedCollections(Fixed(serving)), state, traces, Metrics())

        @asynccontextmanager
        async def opening() -> AsyncIterator[Service]:
            traces.start()
            yield service
            await traces.stop()
            await service.answers.close(at_last)

        yield create_app(opening), service


@asynccontextmanager
async def serving_app(folder: Path, serving: Serving, **options: Any) -> AsyncIterator[tuple[FastAPI, Service]]:
    """Give the application, started."""
    with made_app(folder, serving, **options) as (app, service):
        async with app.router.lifespan_context(app):
            yield app, service


@asynccontextmanager
async def client_of(folder: Path, serving: Serving, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of the application, in process."""
    async with serving_app(folder, serving, **options) as (app, _):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            yield client
