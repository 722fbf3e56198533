"""A server's collections over a small folder, on the mock profile: no model, no network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Query
from rag_harness.service.app_state import Options
from rag_harness.service.corpus.contents import DEFAULT
from rag_harness.service.corpus.tenant_collections import Corpora, TenantCollection
from rag_harness.service.database import StateFolder

__all__ = ["DEFAULT", "PAGES", "check_finds", "found", "names", "opened", "write_pages"]


PAGES = {
    "delivery.md": "# Delivery\n\nA parcel takes three days. Islands take five days.\n",
    "returns/rules.md": "# Returns\n\nReturn a tent within thirty days. Boots come back unworn.\n",
    "warranty.md": "# Warranty\n\nA zip is mended for ten years.\n",
}


def write_pages(folder: Path, pages: Mapping[str, str] = PAGES) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@asynccontextmanager
async def opened(
    root: Path, kb: Path | None = None, experiment: str = "e2", state: StateFolder | None = None, **changes: Any
) -> AsyncIterator[Corpora]:
    settings = load_settings({"profile": "mock", "top_k": 3, "candidates": 5, **changes}, rootdir=root)
    with state or StateFolder(root / "state") as owned:
        corpora = Corpora(settings, Options(experiment, root / "state", kb), experiment, owned)
        await corpora.open()
        try:
            yield corpora
        finally:
            await corpora.close()


async def found(collection: TenantCollection, question: str) -> list[str]:
    """Return the names of the documents that a question is answered from, best first."""
    output = await collection.serving.experiment.pipeline.answer(Query("q", question))
    return [hit.chunk.doc_id for hit in output.context]


def check_finds(collection: TenantCollection, expected: Mapping[str, str]) -> None:
    """Hold a collection to what must be in it: every way to look sees these texts, and nothing else."""
    experiment = collection.serving.experiment
    assert {each.name for each in collection.documents() if each.status == "ready"} == set(expected)
    chunks = list(experiment.chunks()) if experiment.chunks else []
    assert {chunk.doc_id for chunk in chunks} == set(expected)
    assert list(dict.fromkeys(chunk.doc_id for chunk in chunks)) == sorted(expected, key=lambda name: name.split("/"))
    for name, text in expected.items():
        assert collection.serving.document(name).text == text
    for chunk in chunks:
        assert expected[chunk.doc_id][chunk.start : chunk.end] == chunk.text
    assert experiment.retriever is not None
    hits = experiment.retriever.retrieve("tent boot", len(chunks) + 5)
    assert sorted(hit.chunk.chunk_id for hit in hits) == sorted(chunk.chunk_id for chunk in chunks)


def names(collection: TenantCollection) -> list[str]:
    return [each.name for each in collection.documents() if each.status == "ready"]
