"""Late interaction needs the vectors of tokens: a server that gives none is refused before anybody is asked."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.models.endpoints import check_token_vectors, token_batches


def test_like_lengths_together_longest_first() -> None:
    assert list(token_batches([3, 10, 4, 9], max_tokens=20)) == [[1, 3], [2, 0]]


def test_padding_counts() -> None:
    # 10 + 9 + 1 tokens are 20, but three rows of 10 are 30.
    assert list(token_batches([10, 9, 1], max_tokens=20)) == [[0, 1], [2]]


def test_no_texts_and_one() -> None:
    assert list(token_batches([])) == []
    assert list(token_batches([7])) == [[0]]


def test_a_text_longer_than_the_bound_stands_alone() -> None:
    assert list(token_batches([5, 99, 5, 50], max_tokens=10)) == [[1], [3], [0, 2]]


def test_texts_of_no_tokens_make_one_batch() -> None:
    assert list(token_batches([0, 0, 0], max_tokens=1)) == [[0, 1, 2]]


@given(st.lists(st.integers(0, 600)), st.integers(1, 2000))
def test_every_text_once_and_no_batch_over_the_bound(counts: list[int], bound: int) -> None:
    batches = list(token_batches(counts, bound))
    assert sorted(position for batch in batches for position in batch) == list(range(len(counts)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(counts[position] for position in batch) <= bound
    for one, following in pairwise(batches):
        assert (len(one) + 1) * counts[one[0]] > bound or counts[following[0]] == counts[one[0]] == 0


# Late interaction needs the vectors of tokens: a server that gives none is refused before anybody is asked.

OPENAI = replace(Settings(), embed_model="text-embedding-3-small", embed_base_url="https://api.openai.com/v1")


def test_vectors_of_a_server_are_refused_for_late_interaction() -> None:
    with pytest.raises(PrerequisiteError, match="text-embedding-3-small gives one vector a text"):
        check_token_vectors(replace(OPENAI, rerank_model="embedded/late-interaction"))


@pytest.mark.parametrize(
    "settings",
    [
        replace(OPENAI, rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2"),
        replace(Settings(), rerank_model="embedded/late-interaction"),
    ],
)
def test_what_goes_together_is_not(settings: Settings) -> None:
    check_token_vectors(settings)
