from __future__ import annotations

import json

import pytest

from rag_harness.evaluation.judges.embedded.alignment import LONGEST_SENTENCE, JsonLeaf, passage_of, split_text
from rag_harness.evaluation.judges.embedded.features import hours_agreement, hours_of
from rag_harness.evaluation.judges.embedded.quantities import known_numbers, numbers, times


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_text(text).sentences]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Dr. Smith paid at 11:30 a.m. on Monday. It rained.",
            ["Dr. Smith paid at 11:30 a.m. on Monday.", "It rained."],
        ),
        ("1. Dump it.\n2. Stir", ["1. Dump it.", "2. Stir"]),
        ("Costs €1.50. Free above", ["Costs €1.50.", "Free above"]),
        ("日本語です。これも。", ["日本語です。", "これも。"]),
        ("😀", []),
        ("", []),
        ("<b>bold</b> & `code()`", ["<b>bold</b> & `code()`"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert _sentences(text) == sentences


def test_a_sentence_without_end_is_taken_in_parts_that_cover_its_words() -> None:
    text = " ".join(["word"] * 250)
    parts = _sentences(text)
    assert len(parts) == 3
    assert sum(len(part.split()) for part in parts) == 250
    assert all(len(split_text(part).spans) <= LONGEST_SENTENCE for part in parts)


def test_words_are_folded_and_keep_their_places() -> None:
    found = split_text("The shop’s 1,000.50 euros")
    assert found.words == ["the", "shop's", "1000.50", "euros"]
    assert found.stems == ["the", "shop", "1000.50", "euro"]
    assert found.content.tolist() == [False, True, True, True]


def test_json_becomes_sentences_and_fields() -> None:
    said = {
        "attributes": {"OutdoorSeating": True, "WiFi": "no", "Music": None},
        "hours": {"Monday": "11:0-17:30"},
        "n": [1, 2],
    }
    found = passage_of(json.dumps(said))
    assert found.text.splitlines() == [
        "attributes outdoor seating: yes",
        "attributes wi fi: no",
        "attributes music: unknown",
        "hours monday: 11:00 am to 5:30 pm",
        "n: 1",
        "n: 2",
    ]
    assert found.fields == (
        JsonLeaf((("attributes",), ("outdoor", "seating")), True),
        JsonLeaf((("attributes",), ("wi", "fi")), False),
        JsonLeaf((("attributes",), ("music",)), None),
    )


@pytest.mark.parametrize("text", ["{not json", "[1, 2", '"a string"', "{" * 5000, "plain"])
def test_what_is_no_json_object_is_text(text: str) -> None:
    assert passage_of(text).text == text


def test_numbers_in_words_and_figures_are_the_same() -> None:
    assert numbers("1. Three of 1,000.50 in [Source 2], at 5 pm, seven days a week") == ["1000.5", "3"]
    assert {"3", "1000.5", "1"} <= known_numbers("one, three and 1000.50")


def test_times_without_their_half_of_the_day_are_both() -> None:
    assert times("9 am, 5:30 p.m., 17:00 and 7:15") == [{540}, {1050}, {1020}, {435, 1155}]


HOURS = hours_of(
    ["hours monday: 9:00 am to 5:00 pm", "hours tuesday: 9:00 am to 5:00 pm", "hours saturday: 10:00 am to 2:00 pm"]
)


@pytest.mark.parametrize(
    ("sentence", "right_and_wrong"),
    [
        ("Open Monday to Tuesday from 9 am to 5 pm.", (2, 0)),
        ("It opens from 9:00 to 17:00 on Mondays and from 10 am to 3 pm on Saturdays.", (1, 1)),
        ("Open on Monday.", (0, 0)),
        ("Open from 9 am to 5 pm.", (0, 0)),
    ],
)
def test_hours_of_days(sentence: str, right_and_wrong: tuple[int, int]) -> None:
    assert hours_agreement(sentence, HOURS) == right_and_wrong
