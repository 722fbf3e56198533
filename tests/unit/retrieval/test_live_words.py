from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.retrieval import bm25
from rag_harness.retrieval.bm25 import Bm25Index, LiveWords
from tests.unit.hits import chunks_of

WORDS = ["lamp", "lamps", "fee", "the", "zinc", "bulb", "oak's"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=12)


@settings(max_examples=60)
@given(TEXTS, st.data())
def test_every_view_scores_as_bm25_over_its_chunks(texts: list[str], data: st.DataObject) -> None:
    pool, words = chunks_of(texts), LiveWords()
    views = []
    for _ in range(data.draw(st.integers(1, 5))):
        some = [pool[n] for n in data.draw(st.lists(st.integers(0, len(pool) - 1), unique=True))]
        views.append((some, words.view(some)))
    # The older ones are asked only now: what came since must not be seen in them.
    for some, view in views:
        alone = Bm25Index(lambda some=some: some)  # type: ignore[misc]
        for query in ("lamp fee", "zinc zinc oak", "nothing"):
            assert view.scores(query) == alone.scores(query)
            assert view.search(query, 5) == alone.search(query, 5)


def test_words_of_chunks_that_nobody_finds_are_thrown_away() -> None:
    pool = chunks_of([f"lamp{n} bulb" for n in range(bm25._LEAST_DEAD + 50)])
    words, few = LiveWords(), pool[:3]
    before = words.view(pool)
    view = words.view(few)
    assert len(words._counted.chunks) == 3
    assert set(words._counted.having) == {"lamp0", "lamp1", "lamp2", "bulb"}
    assert view.scores("lamp1 bulb") == Bm25Index(lambda: few).scores("lamp1 bulb")
    assert before.scores("lamp7 bulb") == Bm25Index(lambda: pool).scores("lamp7 bulb")
