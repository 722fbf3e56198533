"""The cross-encoder adapter with a tiny model of random weights, made here."""

from __future__ import annotations

import json
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import Settings
from rag_harness.models import rerankers
from rag_harness.models.array_store import ArrayStore, StoreRoom
from rag_harness.models.endpoints import token_batches
from rag_harness.models.rerankers import CrossEncoderReranker, create_cross_encoder, revision_of
from tests.unit.hits import hits_of

pytestmark = pytest.mark.skipif(
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


def test_scores_and_order_are_the_models(folder: Path, tmp_path: Path) -> None:
    scores = expected(folder, "return a lamp")
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).rerank("return a lamp", hits_of(TEXTS))
    order = sorted(range(len(TEXTS)), key=lambda n: -scores[n])
    assert [hit.chunk.text for hit in found] == [TEXTS[n] for n in order]
    assert [hit.rerank_score for hit in found] == pytest.approx([scores[n] for n in order], abs=1e-5)
    assert [hit.rank for hit in found] == [1, 2, 3, 4]
    assert len({round(score, 4) for score in scores}) == 4
    assert sorted((hit.score for hit in found), reverse=True) == [hit.score for hit in hits_of(TEXTS)]


def test_absolute_scores_are_logits_in_the_order_of_the_hits(folder: Path, tmp_path: Path) -> None:
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).absolute("return a lamp", hits_of(TEXTS))
    assert found == pytest.approx(expected(folder, "return a lamp"), abs=1e-5)
    assert min(found) < 0  # no sigmoid


def test_scores_are_kept_by_pair(folder: Path, tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    first = CrossEncoderReranker(str(folder), store).rerank("a lamp", hits_of(TEXTS))
    store.flush()
    replayed = CrossEncoderReranker("not/loaded", ArrayStore([tmp_path]), refuse="Record it")
    assert replayed.rerank("a lamp", hits_of(TEXTS)) == first
    assert "_loaded" not in vars(replayed)
    with pytest.raises(RecordingMissError, match=r"No score of not/loaded for 1 pairs of 'a lamp'\. Record it"):
        replayed.rerank("a lamp", hits_of([*TEXTS, "new"]))


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


def test_requests_together_are_each_alone(folder: Path, tmp_path: Path, noted: list[tuple[str, str]]) -> None:
    requests = [(query, hits_of(texts)) for query, texts in REQUESTS]
    found = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "a")).rerank_many(requests)
    assert sorted(noted) == sorted({(query, text) for query, texts in REQUESTS for text in texts})  # each pair once
    alone = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "b"))
    for reranked, (query, hits) in zip(found, requests, strict=True):
        expected = alone.rerank(query, hits)
        assert [hit.chunk for hit in reranked] == [hit.chunk for hit in expected]
        assert [hit.rerank_score for hit in reranked] == pytest.approx([hit.rerank_score for hit in expected], abs=1e-5)


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


def test_bfloat16_scores_alike_and_is_kept_apart(folder: Path, tmp_path: Path) -> None:
    settings = Settings(rerank_model=f"cross-encoder:{folder}", rootdir=str(tmp_path), precision="bfloat16")
    parts: Any = SimpleNamespace(settings=settings, stores=StoreRoom(settings))
    half = create_cross_encoder(parts)
    assert half.revision == f"{revision_of(str(folder))}-bfloat16"
    exact = CrossEncoderReranker(str(folder), ArrayStore([], tmp_path / "s")).rerank("return a lamp", hits_of(TEXTS))
    scores = {hit.chunk.text: hit.rerank_score for hit in half.rerank("return a lamp", hits_of(TEXTS))}
    assert [scores[hit.chunk.text] for hit in exact] == pytest.approx([hit.rerank_score for hit in exact], abs=0.3)
    assert [scores[hit.chunk.text] for hit in exact] != pytest.approx([hit.rerank_score for hit in exact], abs=1e-6)


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


def test_unknown_model_is_explained_and_not_looked_for_when_offline(offline: list[Any], tmp_path: Path) -> None:
    reranker = CrossEncoderReranker("no/such-cross-encoder", ArrayStore([], tmp_path))
    with pytest.raises(PrerequisiteError, match=r"'no/such-cross-encoder' are neither a folder.*rerank_model of the"):
        reranker.rerank("q", hits_of(TEXTS))
    assert offline == []


def test_a_folder_is_loaded_offline(offline: list[Any], folder: Path, tmp_path: Path) -> None:
    CrossEncoderReranker(str(folder), ArrayStore([], tmp_path)).rerank("q", hits_of(TEXTS))
    assert offline == []


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


def test_revision_of_a_hub_model() -> None:
    assert revision_of("cross-encoder/ms-marco-MiniLM-L-6-v2") == f"1-{REVISIONS['rerankers/cross_encoder']}"
