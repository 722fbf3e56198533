from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.errors import ModelCallError, PrerequisiteError, QueryTooLongError, RecordingMissError
from rag_harness.core.types import Matrix, TokenVectors
from rag_harness.models import array_store
from rag_harness.models.array_store import ArrayStore, CachedEmbedder, key_of
from rag_harness.models.dry_run import MockEmbedder


class Counting(MockEmbedder):
    """Notes what it is asked for, and makes queries differ from documents."""

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[list[str]] = []
        self.fails_on = fails_on

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        if self.fails_on in texts:
            raise ModelCallError("the batch failed")
        return MockEmbedder().embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return -self.embed_documents(texts)


class WithTokens(Counting):
    def embed_with_tokens(self, texts: Sequence[str], role: str) -> tuple[Matrix, list[TokenVectors]]:
        vectors = self.embed_queries(texts) if role == "query" else self.embed_documents(texts)
        return vectors, [np.full((len(text.split()), 4), len(text), np.float16) for text in texts]


def test_nothing_is_embedded_twice_across_instances(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    first = CachedEmbedder(Counting(), store).embed_documents(["a b", "c"])
    store.flush()
    inner = Counting()
    again = CachedEmbedder(inner, ArrayStore([tmp_path])).embed_documents(["a b", "c"])
    assert inner.asked == []
    np.testing.assert_array_equal(again, first)


def test_only_new_texts_are_asked_for_and_order_is_kept(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    embedder.embed_documents(["old one", "old two"])
    texts = ["new", "old two", "another new one", "old one"]
    np.testing.assert_array_equal(embedder.embed_documents(texts), MockEmbedder().embed_documents(texts))
    assert inner.asked[1:] == [["another new one", "new"]]  # longest first
    assert embedder.computed == 4


def test_duplicates_in_one_call_are_computed_once(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    vectors = embedder.embed_documents(["a", "b", "a"])
    assert [sorted(texts) for texts in inner.asked] == [["a", "b"]]
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_roles_are_kept_apart(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    np.testing.assert_array_equal(embedder.embed_documents(["a"]), -embedder.embed_queries(["a"]))
    assert len(inner.asked) == 2


def test_no_texts(tmp_path: Path) -> None:
    assert CachedEmbedder(Counting(), ArrayStore([], tmp_path)).embed_documents([]).shape == (0, 512)


def test_refusal_says_what_is_missing(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    CachedEmbedder(Counting(), store).embed_queries(["known"])
    refusing = CachedEmbedder(inner := Counting(), store, refuse="Record it: --rag-mode=record")
    refusing.embed_queries(["known"])
    with pytest.raises(
        RecordingMissError, match=r"No vector of mock/hashed-words for 1 texts, e\.g\. 'new'\. Record it"
    ):
        refusing.embed_queries(["known", "new"])
    assert inner.asked == []


def test_batches_before_a_failed_one_stay(tmp_path: Path) -> None:
    count = array_store._CHECKPOINT
    texts = [f"text {n:04}" for n in range(2 * count + 1)]
    inner = Counting(fails_on=texts[-1])
    with pytest.raises(ModelCallError):
        CachedEmbedder(inner, ArrayStore([], tmp_path)).embed_documents(texts)
    # On disk: the store was never flushed by hand, as in a run that is killed.
    on_disk = ArrayStore([tmp_path])
    assert len(on_disk) == 2 * count
    CachedEmbedder(after := Counting(), on_disk).embed_documents(texts)
    assert after.asked == [[texts[-1]]]


def test_token_vectors_come_with_the_vectors(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    embedder = CachedEmbedder(inner := WithTokens(), vectors, tokens)
    embedder.embed_documents(["a b", "c"])
    found = embedder.token_vectors(["c", "a b"], "document")
    assert [each.shape for each in found] == [(1, 4), (2, 4)]
    assert found[0].dtype == np.float16
    assert len(inner.asked) == 1


def test_token_vectors_are_computed_where_only_the_vector_is_stored(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    stored = np.full((1, 512), 0.5, np.float32)
    vectors.put({key_of("query", "a b"): stored})
    embedder = CachedEmbedder(WithTokens(), vectors, tokens)
    assert embedder.token_vectors(["a b"], "query")[0].shape == (2, 4)
    np.testing.assert_array_equal(embedder.embed_queries(["a b"]), stored)


def test_what_others_ask_for_is_made_once_and_stored(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    embedder = CachedEmbedder(inner := WithTokens(), vectors, tokens)
    first, its_tokens = embedder.kept(["a b", "c"], "document", True)
    again, _ = embedder.kept(["c", "a b", "new"], "document", False)
    assert inner.asked == [["a b", "c"], ["new"]]
    assert its_tokens is not None
    assert [each.shape for each in its_tokens] == [(2, 4), (1, 4)]
    assert again[:2].tobytes() == first[::-1].tobytes()
    # Of "new" only the vector is there.
    embedder.kept(["new", "c"], "document", True)
    assert inner.asked[2:] == [["new"]]


def test_parts_of_the_same_texts_are_the_same_whatever_others_have_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_store, "_CHECKPOINT", 2)
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    seen: list[Sequence[str]] = []

    def elsewhere(parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[array_store.Computed]:
        seen.extend(parts)
        return (embedder.kept(part, role, with_tokens) for part in parts)

    embedder.elsewhere = elsewhere
    embedder.kept(["ccc", "dd"], "document", False)
    embedder.embed_documents(["a", "b b b b", "ccc", "dd", "eeeee"])
    assert seen == [["b b b b", "eeeee"], ["ccc", "dd"], ["a"]]
    assert inner.asked == [["ccc", "dd"], ["b b b b", "eeeee"], ["a"]]
    embedder.embed_documents(["a", "ccc", "dd"])
    assert len(seen) == 3


def test_a_question_longer_than_the_model_reads_is_refused_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 5)
    embedder = CachedEmbedder(inner := WithTokens(), ArrayStore([], tmp_path), ArrayStore([], tmp_path / "tokens"))
    embedder.embed_queries(["one two three four five"])
    for ask in (embedder.embed_queries, lambda texts: embedder.token_vectors(texts, "query")):
        with pytest.raises(QueryTooLongError, match="has 6 tokens and mock/hashed-words reads 5") as refused:
            ask(["one two three four five six"])
        assert (refused.value.tokens, refused.value.most) == (6, 5)
        again = pickle.loads(pickle.dumps(refused.value))
        assert (str(again), again.tokens) == (str(refused.value), 6)
    assert inner.asked == [["one two three four five"]]


def test_questions_of_a_public_collection_are_cut_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 5)
    embedder = CachedEmbedder(WithTokens(), ArrayStore([], tmp_path), ArrayStore([], tmp_path / "tokens"), may_cut=True)
    assert embedder.embed_queries(["one two three four five six", "one"]).shape[0] == 2
    embedder.embed_queries(["one two three four five six"])
    assert embedder.cut == {"document": 0, "query": 1}


def test_what_may_not_be_asked_or_counted_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 2)
    CachedEmbedder(Counting(), ArrayStore([], tmp_path), refuse="replay").check_query("one two three")

    def lacks(_: object) -> None:
        raise PrerequisiteError("no weights")

    monkeypatch.setattr(MockEmbedder, "tokenizer", lacks)
    CachedEmbedder(Counting(), ArrayStore([], tmp_path)).check_query("one two three")
