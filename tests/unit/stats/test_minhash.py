"""Resemblances of one text to many are those of each pair, to a bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.text.shingles import (
    PERMUTATIONS,
    Hashing,
    Resemblances,
    _mixed,
    candidates,
    resemblance,
    signature,
)

TEXTS = st.lists(st.text(alphabet="ab c", max_size=30), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(TEXTS, st.data())
def test_many_at_once_are_what_each_pair_is(texts: list[str], data: st.DataObject) -> None:
    hashing = Hashing()
    runs = [hashing.runs(text) for text in texts]
    resemblances, numbers = Resemblances(runs), st.integers(0, len(texts) - 1)
    for _ in range(2):
        text, others = data.draw(numbers), data.draw(st.lists(numbers))
        alone = [resemblance(runs[other], runs[text]) for other in others]
        assert resemblances.to(text, others).tolist() == alone


def words(numbers: range) -> str:
    return " ".join(f"word{number}" for number in numbers)


def test_different_runs_of_words_have_different_hashes() -> None:
    assert len(Hashing().runs(words(range(1000)))) == 998


def test_bits_are_mixed_as_splitmix64_does() -> None:
    # What the published SplitMix64 gives first for the seeds 0 and 1: it adds the golden ratio, then mixes.
    seeds = np.array([0, 1], dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    assert [hex(each) for each in _mixed(seeds)] == ["0xe220a8397b1dcdaf", "0x910a2dec89025cc1"]


def test_signatures_are_alike_as_often_as_runs_are() -> None:
    hashing = Hashing()
    first, second = (hashing.runs(words(numbers)) for numbers in (range(600), range(200, 800)))
    same = float((signature(first) == signature(second)).mean())
    assert abs(same - resemblance(first, second)) < 3 * (0.25 / PERMUTATIONS) ** 0.5


def test_candidates_are_the_earlier_texts_that_share_a_band() -> None:
    sketches = np.arange(4 * PERMUTATIONS, dtype=np.uint32).reshape(4, PERMUTATIONS)
    sketches[1] = sketches[0]
    sketches[3, 8:16] = sketches[0, 8:16]
    sketches[2, 19:27] = sketches[0, 19:27]  # across two bands
    assert candidates(sketches) == {1: [0], 3: [0, 1]}


def test_no_text_has_no_resemblance() -> None:
    assert Resemblances([Hashing().runs("a lamp")]).to(0, []).tolist() == np.zeros(0).tolist()
