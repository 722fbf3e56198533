"""Statements with one thing changed."""

from __future__ import annotations

import pytest

from rag_harness.models.simulated_model import changed, names_in, nearest_sentence

NAMES = ["Harbour", "Lindmoor Mills"]


def _ways(text: str) -> set[str]:
    return {changed(text, NAMES, seed) for seed in range(50)}


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("It costs €1,000 a year.", {"It costs €2,000 a year.", "It costs €3,000 a year.", "It costs €1,500 a year."}),
        ("It began in 2024.", {"It began in 2023.", "It began in 2025.", "It began in 2026."}),
        ("It costs 0 euros.", {"It costs 1 euros."}),
        ("Form AF-1 at 07:30.", {"Form AF-1 at 07:30."}),
        ("Go to the Harbour first.", {"Go to the Lindmoor Mills first."}),
        ("Yes, always.", {"No, always."}),
        ("No, never.", {"Yes, never."}),
        ("It cannot be sent.", {"It can be sent."}),
        ("It is not sent.", {"It is sent."}),
        ("It can be sent.", {"It can not be sent."}),
    ],
)
def test_one_thing_is_changed(text: str, ways: set[str]) -> None:
    assert _ways(text) == ways


def test_a_time_a_code_and_a_part_of_a_number_stay() -> None:
    assert _ways("At 07:30 HK-2210 costs 4.90.") == {"At 07:30 HK-2210 costs 4.90."}


def test_several_ways_are_all_taken() -> None:
    text = "Yes, it costs 3 euros at the Harbour."
    assert {way[0] for way in _ways(text)} == {"Y", "N"}
    assert len(_ways(text)) == 5


def test_names_are_words_inside_of_a_sentence() -> None:
    assert names_in(["The shop at Calder Bay is open.", "Ask Mary."]) == ["Calder Bay", "Mary"]


def test_the_nearest_sentence_is_running_text() -> None:
    strange = "# A lamp and a warranty\n\n| lamp | warranty |\n\nIs the lamp under warranty?\n\n"
    text = f"{strange}- A **lamp** has a warranty.\n"
    other = "Shipping takes three days, as always. A lamp is bright enough."
    context = [("a.md", other), ("b.md", text)]
    assert nearest_sentence("Has a lamp a warranty?", context) == ("A lamp has a warranty.", 2)
    assert nearest_sentence("Has a lamp a warranty?", [("a.md", "# Lamp")]) == ("", 0)
