"""Token vectors, which a reranker compares: computed when a document comes or beside questions, and gone with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.types import Matrix, TokenVectors
from rag_harness.models.array_store import key_of
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.service.corpus.tenant_collections import TenantCollection
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, found, opened, write_pages

LATE = "embedded/late-interaction"


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the mock embedder token vectors, and note the documents that it computes them of, with the thread."""
    texts: list[str] = []

    def embed_with_tokens(self: MockEmbedder, some: Sequence[str], role: str) -> tuple[Matrix, list[TokenVectors]]:
        texts.extend(some if role == "document" else [])
        vectors = self.embed_documents(some)
        return vectors, [row.reshape(1, -1).astype(np.float16) for row in vectors]

    monkeypatch.setattr(MockEmbedder, "embed_with_tokens", embed_with_tokens, raising=False)
    return texts


def lacking(collection: TenantCollection) -> list[bool]:
    texts = [chunk.text for held in collection._contents.held for chunk in held.chunks]
    return collection._tokens.lacks([key_of("document", text) for text in texts])


def test_they_come_and_go_with_their_document(tmp_path: Path, asked: list[str]) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "e3", rerank_model=LATE) as corpora:
            collection = corpora.get(DEFAULT)
            assert lacking(collection) == [False] * len(PAGES)
            computed = len(asked)
            assert (await found(collection, "Is a zip mended?"))[0] == "warranty.md"
            assert len(asked) == computed
            done = await collection.ingest("stoves.md", b"# Stoves\n\nGas.\n")
            key = key_of("document", collection._contents.by_name["stoves.md"].chunks[0].text)
            assert collection._tokens.lacks([key]) == [False]
            await collection.delete(done.doc_id)
            assert collection._tokens.lacks([key]) == [True]

    asyncio.run(scenario())


def test_those_that_are_lost_are_computed_again_beside_questions(tmp_path: Path, asked: list[str]) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "e3", rerank_model=LATE):
            pass
        (tmp_path / "state" / "collections" / "1" / "tokens.sqlite3").unlink()
        asked.clear()
        async with opened(tmp_path, kb, "e3", rerank_model=LATE) as corpora:
            collection = corpora.get(DEFAULT)
            while any(lacking(collection)):
                await asyncio.sleep(0.01)
            assert len(asked) == len(PAGES)

    asyncio.run(scenario())
