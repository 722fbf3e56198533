from __future__ import annotations

import pytest
from hypothesis import given, strategies

from rag_harness.evaluation.judges.encoder import chunk_pieces, word_counts


@given(strategies.lists(strategies.sampled_from(["lamp", "oak.", "free!", "\n", "a" * 50])), strategies.integers(1, 9))
def test_no_piece_is_too_long_and_nothing_is_left_out(words: list[str], most: int) -> None:
    chunk = " ".join(words)
    pieces = chunk_pieces(chunk, word_counts, most)
    assert all(count <= most for count in word_counts(pieces))
    assert "".join(chunk.split()) == "".join("".join(pieces).split())


def test_pieces_end_with_sentences() -> None:
    chunk = "One is red. Two is blue. Three is green. Four is black."
    assert chunk_pieces(chunk, word_counts, 8) == ["One is red. Two is blue.", "Three is green. Four is black."]


def test_a_word_without_blanks_is_cut_within() -> None:
    pieces = chunk_pieces("x" * 100, lambda texts: [len(text) for text in texts], 30)
    assert "".join(pieces) == "x" * 100
    assert max(map(len, pieces)) <= 30


@pytest.mark.parametrize("chunk", ["", "  ", "\n\n"])
def test_an_empty_chunk_stays(chunk: str) -> None:
    assert chunk_pieces(chunk, word_counts, 5) == [chunk]
