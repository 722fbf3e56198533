from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.types import Matrix, Vector
from rag_harness.service.corpus.search import LiveIndex
from tests.unit.hits import chunks_of


class Points:
    """An index that breaks ties as unkindly as it can: the last point first."""

    def __init__(self, scores: Mapping[int, float]) -> None:
        self.scores, self.asked = dict(scores), list[int]()

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        self.asked.append(limit)
        best = sorted(self.scores, key=lambda point: (-self.scores[point], -point))
        return [(self.scores[point], point) for point in best[:limit]]

    def add(self, ids: Sequence[int], vectors: Matrix) -> None: ...
    def remove(self, ids: Sequence[int]) -> None: ...
    def ids(self) -> set[int]:
        return set(self.scores)

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        return {}

    def tidy(self) -> None: ...
    def close(self) -> None: ...


@settings(max_examples=200)
@given(
    st.dictionaries(st.integers(1, 60), st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=1),
    st.data(),
    st.integers(1, 12),
)
def test_it_finds_the_best_of_its_state_whatever_else_is_in_the_index(
    scores: dict[int, float], data: st.DataObject, k: int
) -> None:
    own = data.draw(st.lists(st.sampled_from(sorted(scores)), unique=True))
    points, chunks = Points(scores), chunks_of([f"text {point}" for point in own])
    hits = LiveIndex(points, own, chunks).search(np.zeros(4, np.float32), k)
    best = sorted(range(len(own)), key=lambda place: (-scores[own[place]], place))[:k]
    assert [hit.chunk for hit in hits] == [chunks[place] for place in best]
    assert [hit.score for hit in hits] == [scores[own[place]] for place in best]
    assert [hit.rank for hit in hits] == list(range(1, len(best) + 1))


def test_it_asks_once_where_all_points_are_of_its_state() -> None:
    points = Points({point: 1 / point for point in range(1, 100)})
    LiveIndex(points, range(1, 100), chunks_of([f"text {n}" for n in range(1, 100)])).search(np.zeros(4, np.float32), 5)
    assert points.asked == [6]
