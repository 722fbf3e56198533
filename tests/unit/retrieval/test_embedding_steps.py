"""A local model's batches are reported one by one, and are the batches that it would make anyway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rag_harness.core.progress import listening
from rag_harness.core.settings import Settings
from rag_harness.models import array_store
from rag_harness.models.array_store import CachedEmbedder
from rag_harness.models.model_names import token_batches
from rag_harness.retrieval.builder import reported_batches
from tests.unit.work.test_reporting import Memory

LOCAL = Settings()


class Model:
    """A model whose vectors depend on the whole batch, as those of a padded batch do in their last digits."""

    model, revision, dimension, max_tokens = "m", "1", 2, 512

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def tokenizer(self) -> Model:
        return self

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        found = np.empty((len(texts), 2), np.float32)
        for positions in token_batches(self.count(texts)):
            self.batches.append([texts[each] for each in positions])
            found[positions] = [[len(texts[each]), len(positions)] for each in positions]
        return found

    def embed_with_tokens(self, texts: Sequence[str], role: str) -> Any:
        return self.embed_documents(texts), [np.full((1, 2), len(text), np.float16) for text in texts]


TEXTS = [f"{'x' * (1 + 37 * n % 500)}{n}" for n in range(60)]


@pytest.mark.parametrize("tokens", [None, Memory])
def test_batches_are_the_same_and_each_is_reported(monkeypatch: pytest.MonkeyPatch, tokens: Any) -> None:
    monkeypatch.setattr(array_store, "_CHECKPOINT", 25)
    usual, model, heard = Model(), Model(), list[int]()
    expected = CachedEmbedder(usual, Memory(), tokens and tokens()).embed_documents(TEXTS)
    embedder = CachedEmbedder(model, Memory(), tokens and tokens())
    with listening(lambda what, done, total, unit: heard.append(done)), reported_batches(embedder, LOCAL):
        assert np.array_equal(embedder.embed_documents(TEXTS), expected)
    assert model.batches == usual.batches
    sums = np.cumsum([len(batch) for batch in model.batches]).tolist()
    assert sorted(set(heard)) == [0, *sums]
    assert heard == sorted(heard)
    assert len(sums) > 5
    if tokens:
        assert [int(each[0, 0]) for each in embedder.token_vectors(TEXTS, "document")] == [len(text) for text in TEXTS]


def test_a_service_and_other_workers_have_steps_of_their_own() -> None:
    embedder = CachedEmbedder(Model(), Memory())
    with reported_batches(embedder, Settings(embed_model="m", embed_base_url="http://127.0.0.1:1")):
        assert embedder.elsewhere is None
    other = embedder.elsewhere = embedder._here
    with reported_batches(embedder, LOCAL):
        assert embedder.elsewhere == other
    assert embedder.elsewhere == other
    embedder.elsewhere = None
    with reported_batches(embedder, LOCAL):
        assert embedder.elsewhere is not None
    assert embedder.elsewhere is None
