"""Words that state the same or the opposite of a thing."""

from __future__ import annotations

import pytest

from rag_harness.core.text.terms import opposite, same_sense


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("accepted", "rejected"),
        ("open", "closed"),
        ("available", "unavailable"),
        ("refundable", "non-refundable"),
        ("before", "after"),
        ("included", "excluded"),
        ("free", "charged"),
        ("starts", "ends"),
    ],
)
def test_opposites_in_any_order_and_form(one: str, other: str) -> None:
    assert opposite(one, other)
    assert opposite(other, one)
    assert not opposite(one, one)


def test_a_contrast_tells_two_things_apart_and_denies_nothing() -> None:
    assert opposite("adults", "children")
    assert not opposite("adults", "children", contrasts=False)


def test_words_of_one_sense() -> None:
    assert same_sense("required", "compulsory")
    assert not same_sense("required", "optional")
    assert not same_sense("lamp", "table")
