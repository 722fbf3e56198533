from __future__ import annotations

import numpy as np

from rag_harness.models.dry_run import MockEmbedder


def test_unit_length_and_dimension() -> None:
    embedder = MockEmbedder()
    vectors = embedder.embed_documents(["Return a lamp", "Lamps, lamps!", "", "€ -- !"])
    assert vectors.shape == (4, embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_shared_words_are_near() -> None:
    query, near, far = MockEmbedder().embed_queries(["return a lamp", "You may RETURN a lamp.", "opening hours"])
    assert query @ near > 0.7 > query @ far


def test_same_vector_in_every_process() -> None:
    # crc32("lamp") % 512; hash() would differ from process to process.
    assert MockEmbedder().embed_documents(["lamp"])[0].argmax() == 102


def test_no_texts() -> None:
    assert MockEmbedder().embed_documents([]).shape == (0, 512)


def test_counts_words_and_marks() -> None:
    assert MockEmbedder().tokenizer().count(["It costs €29.", ""]) == [5, 0]
