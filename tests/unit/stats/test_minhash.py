"""Resemblances of one text to many are those of each pair, to a bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.stats.minhash import Hashing, Resemblances, resemblance

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


def test_no_text_has_no_resemblance() -> None:
    assert Resemblances([Hashing().runs("a lamp")]).to(0, []).tolist() == np.zeros(0).tolist()
