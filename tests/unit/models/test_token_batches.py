from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.model_names import token_batches


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
