"""Gaps in sentences."""

from __future__ import annotations

from random import Random

import pytest

from rag_harness.authoring.kb.embedded_planner import filled


def drawn(text: str, **names: str) -> set[str]:
    return {filled(text, names, Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(
    ("text", "drawn_of_it"),
    [
        ("The {thing}.", {"The kettle."}),
        ("{a|b|}", {"a", "b", ""}),
        ("{the {thing}|it}", {"the kettle", "it"}),
        ("{10..20:5} %", {"10 %", "15 %", "20 %"}),
        ("€{1..2:0.50}", {"€1.00", "€1.50", "€2.00"}),
        ("€{0.5..0.7:0.1}", {"€0.5", "€0.6", "€0.7"}),
        ("{2000..2001:1}", {"2,000", "2,001"}),
        ("{1..2:1} working days", {"1 working day", "2 working days"}),
        ("{0.1..0.2:0.1} litres, {11..12:1} days", {f"0.{n} litres, {m} days" for n in (1, 2) for m in (11, 12)}),
    ],
)
def test_what_a_gap_gives(text: str, drawn_of_it: set[str]) -> None:
    assert drawn(text, thing="kettle") == drawn_of_it


def test_a_date_is_one_and_of_its_years() -> None:
    days = drawn("{date:2025..2026}")
    assert len(days) > 30
    assert {day.split()[-1] for day in days} == {"2025", "2026"}


def test_a_gap_that_nobody_fills_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        filled("The {colour} kettle", {}, Random(0))
