"""Rerankers: cross-encoders with a tiny model, and late interaction."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import Settings
from rag_harness.core.types import TokenVectors
from rag_harness.models import rerankers
from rag_harness.models.array_store import ArrayStore, StoreRoom, key_of
from rag_harness.models.endpoints import token_batches
from rag_harness.models.rerankers import (
    CrossEncoderReranker,
    LateInteractionReranker,
    create_cross_encoder,
    create_late_interaction,
    max_sims,
    revision_of,
)
from tests.unit.hits import hits_of

# The cross-encoder adapter with a tiny model of random weights, made here.

needs_model = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="needs the extra 'local': sentence-transformers"
)
WORDS = ["lamp", "fee", "zinc", "oak", "return", "a", "the"]
TEXTS = ["a lamp", "the oak fee", "zinc zinc zinc", "return the lamp"]


def save_model(folder: Path, seed: int) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(seed)
    vocabulary = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    BertTokenizerFast(vocab=vocabulary, model_max_length=32).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        num_labels=1,
        initializer_range=1.0,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("tiny"), seed=1)


def expected(folder: Path, query: str) -> list[float]:
    """Score pair by pair with transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = [model(**tokenizer(query, text, return_tensors="pt")).logits[0, 0] for text in TEXTS]
    return [float(logit) for logit in logits]


@needs_model
def test_scores_and_order_are_the_models(folder: Path, tmp_path: Path) -> None:
    scores = expected(folder, "return a lamp")
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).rerank("return a lamp", hits_of(TEXTS))
    order = sorted(range(len(TEXTS)), key=lambda n: -scores[n])
    assert [hit.chunk.text for hit in found] == [TEXTS[n] for n in order]
    assert [hit.rerank_score for hit in found] == pytest.approx([scores[n] for n in order], abs=1e-5)
    assert [hit.rank for hit in found] == [1, 2, 3, 4]
    assert len({round(score, 4) for score in scores}) == 4
    assert sorted((hit.score for hit in found), reverse=True) == [hit.score for hit in hits_of(TEXTS)]


@needs_model
def test_absolute_scores_are_logits_in_the_order_of_the_hits(folder: Path, tmp_path: Path) -> None:
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).absolute("return a lamp", hits_of(TEXTS))
    assert found == pytest.approx(expected(folder, "return a lamp"), abs=1e-5)
    assert min(found) < 0  # no sigmoid


@needs_model
def test_scores_are_kept_by_pair(folder: Path, tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    first = CrossEncoderReranker(str(folder), store).rerank("a lamp", hits_of(TEXTS))
    store.flush()
    replayed = CrossEncoderReranker("not/loaded", ArrayStore([tmp_path]), refuse="Record it")
    assert replayed.rerank("a lamp", hits_of(TEXTS)) == first
    assert "_loaded" not in vars(replayed)
    with pytest.raises(RecordingMissError, match=r"No score of not/loaded for 1 pairs of 'a lamp'\. Record it"):
        replayed.rerank("a lamp", hits_of([*TEXTS, "new"]))


@needs_model
def test_only_missing_pairs_are_scored(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path))
    reranker.rerank("a lamp", hits_of(TEXTS[:2]))
    asked: list[tuple[str, str]] = []
    predict = reranker._loaded.predict

    def noted(pairs: list[tuple[str, str]], **options: Any) -> Any:
        asked.extend(pairs)
        return predict(pairs, **options)

    monkeypatch.setattr(reranker._loaded, "predict", noted)
    reranker.rerank("a lamp", hits_of(TEXTS))
    assert sorted(asked) == sorted(("a lamp", text) for text in TEXTS[2:])


REQUESTS = [("a lamp", TEXTS), ("the fee", TEXTS[::-1]), ("a lamp", ["oak", *TEXTS[1:]]), ("zinc", [])]


@needs_model
def test_requests_together_are_each_alone(folder: Path, tmp_path: Path, noted: list[tuple[str, str]]) -> None:
    requests = [(query, hits_of(texts)) for query, texts in REQUESTS]
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "a")).rerank_many(requests)
    assert sorted(noted) == sorted({(query, text) for query, texts in REQUESTS for text in texts})  # each pair once
    alone = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "b"))
    for reranked, (query, hits) in zip(found, requests, strict=True):
        expected = alone.rerank(query, hits)
        assert [hit.chunk for hit in reranked] == [hit.chunk for hit in expected]
        assert [hit.rerank_score for hit in reranked] == pytest.approx([hit.rerank_score for hit in expected], abs=1e-5)


@needs_model
def test_nothing_to_rerank(tmp_path: Path) -> None:
    assert CrossEncoderReranker("not/loaded", ArrayStore([], tmp_path)).rerank_many([]) == []


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Note every pair that any cross-encoder scores."""
    from sentence_transformers import CrossEncoder

    asked: list[tuple[str, str]] = []
    predict = CrossEncoder.predict

    def noting(model: Any, pairs: list[tuple[str, str]], **options: Any) -> Any:
        asked.extend(pairs)
        return predict(model, pairs, **options)

    monkeypatch.setattr(CrossEncoder, "predict", noting)
    return asked


@needs_model
@pytest.mark.parametrize("activation", [None, "torch.nn.modules.linear.Identity"])
def test_scores_are_the_logits_in_many_batches_whatever_predict_makes_of_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activation: str | None
) -> None:
    from sentence_transformers import CrossEncoder

    model = shutil.copytree(folder, tmp_path / "model")
    if activation:
        config = json.loads((model / "config.json").read_text())
        config["sentence_transformers"] = {"activation_fn": activation, "version": "5.0.0"}
        (model / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(rerankers, "token_batches", lambda counts: token_batches(counts, 20))
    texts = [" ".join(["oak", "fee", "zinc"][: n % 3 + 1] * (n % 7 + 1)) for n in range(21)] + ["lamp " * 90]
    loaded, pairs = CrossEncoder(str(model), device="cpu"), [("a lamp", text) for text in texts]
    assert (loaded.predict(pairs).min() < 0) == bool(activation)  # no sigmoid
    expected = loaded.predict(pairs, activation_fn=lambda logits: logits)
    found = CrossEncoderReranker(str(model), ArrayStore([], tmp_path / "s")).rerank("a lamp", hits_of(texts))
    scores = {hit.chunk.text: hit.rerank_score for hit in found}
    assert [scores[text] for text in texts] == pytest.approx(list(expected), abs=1e-4)


@needs_model
def test_bfloat16_scores_alike_and_is_kept_apart(folder: Path, tmp_path: Path) -> None:
    settings = Settings(rerank_model=f"cross-encoder:{folder}", rootdir=str(tmp_path), precision="bfloat16")
    parts: Any = SimpleNamespace(settings=settings, stores=StoreRoom(settings))
    half = create_cross_encoder(parts)
    assert half.revision == f"{revision_of(str(folder))}-bfloat16"
    exact = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "s")).rerank("return a lamp", hits_of(TEXTS))
    scores = {hit.chunk.text: hit.rerank_score for hit in half.rerank("return a lamp", hits_of(TEXTS))}
    assert [scores[hit.chunk.text] for hit in exact] == pytest.approx([hit.rerank_score for hit in exact], abs=0.3)
    assert [scores[hit.chunk.text] for hit in exact] != pytest.approx([hit.rerank_score for hit in exact], abs=1e-6)


@needs_model
def test_a_device_that_is_not_there_is_named_and_one_that_is_keeps_scores_apart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = Settings(rerank_model=f"cross-encoder:{folder}", rootdir=str(tmp_path), device="cuda")
    parts: Any = SimpleNamespace(settings=settings, stores=StoreRoom(settings))
    on_gpu = create_cross_encoder(parts)
    assert on_gpu.revision == f"{revision_of(str(folder))}-cuda"
    with pytest.raises(PrerequisiteError, match="--rag-device=cuda, and torch"):
        on_gpu.rerank("return a lamp", hits_of(TEXTS))


@needs_model
def test_no_hits(tmp_path: Path) -> None:
    assert CrossEncoderReranker("not/loaded", ArrayStore([], tmp_path)).rerank("q", []) == []


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Set HF_HUB_OFFLINE as if it had been there from the start, and note every attempt to connect."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    attempts: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: attempts.append(args))
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: attempts.append(address))
    return attempts


@needs_model
def test_unknown_model_is_explained_and_not_looked_for_when_offline(offline: list[Any], tmp_path: Path) -> None:
    reranker = CrossEncoderReranker("no/such-cross-encoder", ArrayStore([], tmp_path))
    with pytest.raises(PrerequisiteError, match=r"'no/such-cross-encoder' are neither a folder.*rerank_model of the"):
        reranker.rerank("q", hits_of(TEXTS))
    assert offline == []


@needs_model
def test_a_folder_is_loaded_offline(offline: list[Any], folder: Path, tmp_path: Path) -> None:
    CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).rerank("q", hits_of(TEXTS))
    assert offline == []


@needs_model
@pytest.mark.parametrize("damage", ["empty", "no weights", "cut weights"])
def test_damaged_folder_is_explained(damage: str, folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    if damage != "empty":
        shutil.copytree(folder, broken, dirs_exist_ok=True)
        weights = broken / "model.safetensors"
        weights.unlink() if damage == "no weights" else weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(PrerequisiteError, match="The weights of the cross-encoder"):
        CrossEncoderReranker(str(broken), ArrayStore([], tmp_path / "s")).rerank("q", hits_of(TEXTS))


@needs_model
def test_weights_trained_on_get_scores_of_their_own(folder: Path, tmp_path: Path) -> None:
    model = shutil.copytree(folder, tmp_path / "model")
    settings = Settings(rerank_model=f"cross-encoder:{model}", rootdir=str(tmp_path), mode="auto")
    parts: Any = SimpleNamespace(settings=settings, stores=StoreRoom(settings))
    first = create_cross_encoder(parts)
    before = first.rerank("a lamp", hits_of(TEXTS))
    save_model(model, seed=2)
    second = create_cross_encoder(parts)
    after = second.rerank("a lamp", hits_of(TEXTS))
    assert (first.model, second.model) == (str(model), str(model))
    assert first.revision != second.revision
    assert sorted(hit.rerank_score or 0 for hit in before) != sorted(hit.rerank_score or 0 for hit in after)


@needs_model
def test_revision_of_a_hub_model() -> None:
    assert revision_of("cross-encoder/ms-marco-MiniLM-L-6-v2") == f"1-{REVISIONS['rerankers/cross_encoder']}"


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


def test_requests_together_are_each_alone_by_tokens(tmp_path: Path) -> None:
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
