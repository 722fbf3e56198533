"""The Pareto front, against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.page.charts import Estimate, Point, pareto
from rag_harness.page.charts.plots import Better

_small = st.integers(-3, 3).map(float)
_points = st.lists(st.tuples(_small, _small), max_size=15)
_better = st.sampled_from(["low", "high"])


def beats(one: Point, other: Point, better_x: str, better_y: str) -> bool:
    x = (one.x.value - other.x.value) * (1 if better_x == "high" else -1)
    y = (one.y.value - other.y.value) * (1 if better_y == "high" else -1)
    return x >= 0 and y >= 0 and (x > 0 or y > 0)


@given(_points, _better, _better)
def test_the_front_is_who_nobody_beats_by_rising_x(places: list[tuple[float, float]], x: Better, y: Better) -> None:
    points = [Point(str(place), Estimate(a), Estimate(b)) for place, (a, b) in enumerate(places)]
    unbeaten = {one.name for one in points if not any(beats(other, one, x, y) for other in points)}
    front = pareto(points, x, y)
    assert {one.name for one in front} == unbeaten
    assert [one.x.value for one in front] == sorted(one.x.value for one in front)


@pytest.mark.parametrize("count", [1, 3])
def test_equals_do_not_beat_each_other(count: int) -> None:
    same = [Point(str(place), Estimate(1), Estimate(2)) for place in range(count)]
    assert pareto(same, "low", "high") == same
