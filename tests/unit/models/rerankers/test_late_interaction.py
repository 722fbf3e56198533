from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import Settings
from rag_harness.core.types import TokenVectors
from rag_harness.models import rerankers
from rag_harness.models.array_store import ArrayStore, key_of
from rag_harness.models.rerankers import LateInteractionReranker, create_late_interaction, max_sims
from tests.unit.hits import hits_of


class Tokens:
    """Token vectors that a test chose; notes what it was asked for."""

    model, revision = "test/tokens", "1"

    def __init__(self, vectors: Mapping[str, Sequence[Sequence[float]]]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def token_vectors(self, texts: Sequence[str], role: str) -> list[TokenVectors]:
        self.asked += [f"{role} {text}" for text in texts]
        return [np.array(self.vectors[text], np.float16) for text in texts]


class Lexical:
    def __init__(self, scores: Sequence[float]) -> None:
        self.by_id = {f"page.md#chunk_{n}": score for n, score in enumerate(scores)}

    def scores(self, query: str) -> Mapping[str, float]:
        return self.by_id


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
FOUND = {"q": [X, Y], "both": [Y, X], "one": [X, Z], "none": [Z]}


def reranker(tmp_path: Path, words: Sequence[float], keep: bool = False) -> tuple[LateInteractionReranker, Tokens]:
    tokens = Tokens(FOUND)
    return LateInteractionReranker(tokens, Lexical(words), ArrayStore([], tmp_path), keep=keep), tokens


def rows(count: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    return arrays.arrays(np.float16, st.tuples(count, st.just(4)), elements=st.floats(-1, 1, width=16))


@settings(max_examples=50)
@given(rows(st.integers(1, 5)), st.lists(rows(st.integers(1, 6)), max_size=4))
def test_max_sims_is_the_naive_loop(query: TokenVectors, documents: list[TokenVectors]) -> None:
    naive = []
    for document in documents:
        best = [max(float(np.dot(q.astype(float), d.astype(float))) for d in document) for q in query]
        naive.append(sum(best) / len(best))
    found = max_sims(query, documents)
    assert found.shape == (len(documents),)
    np.testing.assert_allclose(found, naive, atol=1e-5)


@settings(max_examples=50)
@given(
    arrays.arrays(np.float16, (3, 64), elements=st.floats(-1, 1, width=16)),
    arrays.arrays(np.float16, (5, 64), elements=st.floats(-1, 1, width=16)),
    st.permutations(range(64)),
)
def test_max_sims_do_not_depend_on_the_order_of_the_sum(
    query: TokenVectors, document: TokenVectors, order: list[int]
) -> None:
    alone, among = max_sims(query, [document]), max_sims(query[:, order], [document, document[:, order]])
    assert among[1] == alone[0]


def test_the_last_bits_of_the_first_stages_scores_change_nothing(tmp_path: Path) -> None:
    dense = np.round(np.linspace(0.31, 0.38, 20) ** 2, 6)
    texts, words = ["none", "both", "one", "both"] * 5, [float(n % 7) for n in range(20)]
    ranker, _ = reranker(tmp_path, words)
    exact = ranker.rerank("q", hits_of(texts, dense.tolist()))
    for bits in (np.float64(6e-8) * (-1) ** np.arange(20), np.full(20, -4e-7)):
        found = ranker.rerank("q", hits_of(texts, (dense + bits).tolist()))
        assert [(hit.chunk.chunk_id, hit.rerank_score) for hit in found] == [
            (hit.chunk.chunk_id, hit.rerank_score) for hit in exact
        ]
    assert all(str(hit.rerank_score) == str(round(hit.rerank_score or 0.0, 6) + 0.0) for hit in exact)


def test_score_is_the_sum_of_three_z_scores(tmp_path: Path) -> None:
    ranker, _ = reranker(tmp_path, [0.0, 1.0, 5.0])
    dense = [0.9, 0.5, 0.4]
    hits = hits_of(["none", "both", "one"], dense)
    parts = np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 5.0], dense])
    expected = ((parts - parts.mean(axis=1, keepdims=True)) / parts.std(axis=1, keepdims=True)).sum(axis=0)
    found = ranker.rerank("q", hits)
    by_text = {hit.chunk.text: hit for hit in found}
    assert [by_text[text].rerank_score for text in ("none", "both", "one")] == pytest.approx(expected, abs=1e-5)
    assert [hit.chunk.text for hit in found] == ["one", "both", "none"]
    assert [hit.rank for hit in found] == [1, 2, 3]
    assert [hit.score for hit in found] == [0.4, 0.5, 0.9]  # the first stage's is kept


def test_what_is_equal_for_all_counts_nothing(tmp_path: Path) -> None:
    # In float32 the mean of twenty times 0.3 is not 0.3.
    ranker, _ = reranker(tmp_path, [0.3] * 20)
    found = ranker.rerank("q", hits_of(["one"] * 20, [0.3] * 20))
    assert {hit.rerank_score for hit in found} == {0.0}
    assert [hit.chunk.chunk_id for hit in found] == [f"page.md#chunk_{n}" for n in range(20)]


def test_ties_keep_the_first_order(tmp_path: Path) -> None:
    ranker, _ = reranker(tmp_path, [0, 0, 0, 0])
    found = ranker.rerank("q", hits_of(["none", "both", "none", "both"], [0.5] * 4))
    assert [hit.chunk.chunk_id[-1] for hit in found] == ["1", "3", "0", "2"]


@pytest.mark.parametrize("texts", [[], ["one"]])
def test_few_hits(tmp_path: Path, texts: list[str]) -> None:
    ranker, _ = reranker(tmp_path, [3.0])
    assert [hit.rerank_score for hit in ranker.rerank("q", hits_of(texts))] == [0.0] * len(texts)


def test_recorded_pairs_need_no_tokens(tmp_path: Path) -> None:
    ranker, _ = reranker(tmp_path, [0, 1, 2], keep=True)
    first = ranker.rerank("q", hits_of(["none", "both", "one"]))
    again, tokens = reranker(tmp_path, [0, 1, 2])
    again._pairs = ranker._pairs
    assert again.rerank("q", hits_of(["none", "both", "one"])) == first
    assert tokens.asked == []


def test_only_missing_pairs_are_computed(tmp_path: Path) -> None:
    ranker, tokens = reranker(tmp_path, [0, 1, 2], keep=True)
    ranker.rerank("q", hits_of(["none", "both"]))
    tokens.asked.clear()
    ranker.rerank("q", hits_of(["none", "both", "one"]))
    assert sorted(tokens.asked) == ["document one", "query q"]


def test_requests_together_are_each_alone(tmp_path: Path) -> None:
    requests = [("q", hits_of(["none", "both", "one"])), ("one", hits_of(["both", "none"])), ("q", [])] * 9
    ranker, tokens = reranker(tmp_path, [0, 1, 2])
    found = ranker.rerank_many(requests)
    assert len(requests) > rerankers._TOGETHER
    # Once for each of the two rounds in which the requests come.
    assert sorted(tokens.asked) == sorted(
        ["query q", "query one", "document none", "document both", "document one"] * 2
    )
    assert found == [reranker(tmp_path, [0, 1, 2])[0].rerank(query, hits) for query, hits in requests]
    assert ranker.rerank_many([]) == []


def test_pairs_are_kept_only_when_recording(tmp_path: Path) -> None:
    ranker, _ = reranker(tmp_path, [0, 1, 2])
    ranker.rerank("q", hits_of(["none", "both", "one"]))
    assert ranker._pairs.get([key_of("q", "one")]) == [None]


@pytest.mark.parametrize(("mode", "kept"), [("record", 2), ("auto", 2), ("replay", 0)])
def test_created_from_settings(tmp_path: Path, mode: Any, kept: int) -> None:
    opened, store = list[tuple[str, ...]](), ArrayStore([], tmp_path)

    def open_store(*names: str) -> ArrayStore:
        opened.append(names)
        return store

    stores = SimpleNamespace(open=open_store)
    settings = Settings(mode=mode)
    parts = SimpleNamespace(settings=settings, stores=stores, token_embedder=Tokens(FOUND), lexical=Lexical([1, 2]))
    create_late_interaction(parts).rerank("q", hits_of(["one", "both"]))
    assert opened == [("pairs", "max-sim-test/tokens", f"{REVISIONS['rerankers/max_sim']}-1")]
    assert len(store) == kept
