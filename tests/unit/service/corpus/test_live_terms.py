from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.retrieval.retrievers import Rarity
from rag_harness.service.corpus.contents import LiveTerms
from tests.unit.hits import chunks_of

WORDS = ["lamp", "lamps", "fee", "the", "zinc"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=8)


@settings(max_examples=50)
@given(TEXTS, st.data())
def test_weights_are_those_over_the_chunks_of_the_state(texts: list[str], data: st.DataObject) -> None:
    pool, live = chunks_of(texts), LiveTerms()
    states = []
    for _ in range(data.draw(st.integers(1, 5))):
        some = [pool[n] for n in data.draw(st.lists(st.integers(0, len(pool) - 1), unique=True))]
        states.append((some, live.over(some)))
    for some, weights in states:
        alone = Rarity(some)
        assert [weights.of(word) for word in ("lamp", "fee", "zinc", "none")] == [
            alone.of(word) for word in ("lamp", "fee", "zinc", "none")
        ]
    assert all(live._having.values())
