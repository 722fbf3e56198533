"""Parts whose results ship or outlive a release give the results that are stored for their revision."""

from __future__ import annotations

import pytest

from rag_harness.core.registry import REVISIONS
from tests.revisions.behaviours import BEHAVIOURS
from tests.revisions.stored import differences, stored


def test_each_revision_has_a_behaviour() -> None:
    assert BEHAVIOURS.keys() == REVISIONS.keys()


@pytest.mark.parametrize("part", REVISIONS)
def test_a_part_gives_what_is_stored_for_its_revision(part: str) -> None:
    found, (revision, outputs) = BEHAVIOURS[part](), stored(part)
    different = differences(outputs, found)
    if revision == REVISIONS[part]:
        assert not different, (
            f"{part} gives other results ({'; '.join(different[:3])}). If that is meant, raise its revision in "
            "rag_harness/core/registry.py, and run: python -m tests.revisions"
        )
    assert revision == REVISIONS[part], f"{part} has a new revision. Store its results: python -m tests.revisions"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"a": "text"}, {"a": "Text"}),
        ([1.0, 2.0], [1.0, 2.0002]),
        ([1, 2], [1]),
        ({"a": 1}, {"b": 1}),
        ([None], [0.0]),
        ([True], [1.0]),
        ({"a": [1]}, {"a": {}}),
    ],
)
def test_other_results_are_seen(before: object, now: object) -> None:
    assert differences(before, now)
    assert not differences(before, before)


def test_digits_beyond_the_fourth_are_not() -> None:
    assert not differences({"a": [0.12345, -0.0]}, {"a": [0.12339, 0.0]})
