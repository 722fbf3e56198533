"""Values by case: a mapping like any other, made of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from rag_harness.stats.inputs import CaseValues, differences, in_both
from rag_harness.stats.means import mean_of, mean_or_none

IDS = ["a", "b", "c", "d"]


def values(*places: int, of: list[str] = IDS) -> CaseValues:
    return CaseValues(of, np.array(places, np.intp), np.array(places, np.float64) / 4)


def test_it_is_the_mapping_that_it_stands_for() -> None:
    found, same = values(0, 2), {"a": 0.0, "c": 0.5}
    assert found == same
    assert (list(found), list(found.values()), list(found.items())) == (["a", "c"], [0.0, 0.5], [*same.items()])
    assert (len(found), found["c"], found.get("b"), "c" in found, "b" in found) == (2, 0.5, None, True, False)
    assert not values()
    assert repr(found) == repr(same)


@pytest.mark.parametrize("other", [values(2, 3), dict(values(2, 3)), values(2, 3, of=[*IDS])])
def test_pairs_are_the_same_however_the_values_are_kept(other: CaseValues) -> None:
    first, second = in_both(values(0, 2, 1 + 2), other)
    assert first == second == {"c": 0.5, "d": 0.75}
    assert differences(first, second) == {"c": 0.0, "d": 0.0}
    assert differences(values(2), {"c": 0.25}) == {"c": 0.25}


@pytest.mark.parametrize("found", [[], [0.0, 1.0, 1.0], [0.1] * 10, [1e16, 1.0, -1e16], [0.0], [1.0, 0.5]])
def test_the_mean_of_an_array_is_that_of_its_values(found: list[float]) -> None:
    assert mean_of(np.array(found)) == mean_or_none(found)


def test_what_is_no_number_has_no_mean() -> None:
    with pytest.raises(ValueError, match="left out"):
        mean_of(np.array([1.0, np.nan]))
