"""Which figures a sentence states, and which of its numbers are names."""

from __future__ import annotations

import pytest

from rag_harness.core.text.figures import MOST_FIGURES, figures_of, tokens

DAY = 86_400


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It costs €1,250.50 or 90 cents", [("€", 1250.5, 1250.5, ""), ("€", 0.9, 0.9, "")]),
        ("Delivery is free of charge", [("€", 0, 0, "")]),
        ("It takes up to two weeks", [("time", 14 * DAY, 14 * DAY, "upper")]),
        ("a 30-day trial", [("time", 30 * DAY, 30 * DAY, "")]),
        ("within 5 working days", [("working days", 5, 5, "upper")]),
        ("for 2 full years", [("months", 24, 24, "")]),
        ("no fewer than 5 people", [("count", 5, 5, "lower")]),
        ("no more than 5 people", [("count", 5, 5, "upper")]),
        ("5 people or more", [("count", 5, 5, "lower")]),
        ("at least 5 people", [("count", 5, 5, "lower")]),
        ("5 items or less", [("count", 5, 5, "upper")]),
        ("about 5 kg", [("mass", 5000, 5000, "about")]),
        ("3 to 5 weeks", [("time", 21 * DAY, 35 * DAY, "")]),
        ("between 1 % and 8 %", [("percent", 1, 8, "")]),
        ("€3–€5", [("€", 3, 5, "")]),
        ("2.5 per cent", [("percent", 2.5, 2.5, "")]),
        ("on 3 May 2025", [("date", 503, 503, "")]),
        ("by June 5", [("date", 605, 605, "")]),
        ("on the 3rd of each month", [("day of the month", 3, 3, "")]),
        ("children of 6 may travel", [("count", 6, 6, "")]),
        ("at 5 p.m. or 17:00", [("clock", 1020, 1020, ""), ("clock", 1020, 1020, "")]),
        ("at 12 am", [("clock", 0, 0, "")]),
        ("founded in 1998", [("year", 1998, 1998, "")]),
        ("needs Java 11", [("version", 11e8, 11e8, "")]),
        ("since version 2.1", [("version", 200_010_000, 200_010_000, "")]),
        ("rooms in zones 1 and 2", []),
        ("the Ferrite 4.2 manual", []),
        ("form R-7 and code A20", []),
    ],
)
def test_figures_are_typed(sentence: str, expected: list[tuple[str, float, float, str]]) -> None:
    figures, _ = figures_of(list(tokens(sentence, 0, len(sentence))), sentence)
    assert [(one.dimension, one.low, one.high, one.bound) for one in figures] == expected


def test_numbers_behind_labels_are_parts_of_names() -> None:
    sentence = "Rooms in zones 1, 2 and 3 of Ferrite 4.2 are shut"
    assert list(figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[1].values()) == [
        "zone 1",
        "zone 2",
        "zone 3",
        "ferrite 4.2",
    ]


def test_what_is_counted_and_for_what_is_read() -> None:
    sentence = "You earn 200 Leaves and €4 for every order"
    count, amount = figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[0]
    assert (sorted(count.role), count.written) == (["leav"], "200")
    assert (amount.per, amount.written) == ("order", "€4")


def test_the_figures_of_a_statement_are_bounded() -> None:
    sentence = "€5 " * 50
    assert len(figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[0]) == MOST_FIGURES
