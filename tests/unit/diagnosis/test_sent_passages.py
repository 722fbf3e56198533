"""What was sent of a page, held against the page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.diagnosis.corpus_view import (
    are_of_one_length,
    are_shortened,
    bare,
    border_beside,
    is_cut_between,
    other_version,
)

QUOTE = "A day ticket for the garage costs **14 euros** and is bought at the machine by the lift."
ROW = "| Price | €119 | €179 |"
LEAST = int(0.15 * len("".join(QUOTE.split())))
PAGE = f"# Parking\n\nThe garage has 120 places.\n\n{QUOTE}\n\n{ROW}\n\nBicycles are parked free of charge.\n"


@pytest.mark.parametrize(
    ("quote", "chunk", "answer", "wanted"),
    [
        (QUOTE, QUOTE.replace("14", "17"), "", True),
        (QUOTE, QUOTE.replace("**", ""), "", False),
        (QUOTE, QUOTE[:50], "", False),
        (QUOTE, QUOTE.replace("euros", "dollars"), "", True),
        (ROW, "| Price | €122 | €182 |", "", True),
        (QUOTE, "Bicycles are parked free of charge.", "", False),
        (QUOTE, "The garage sells a day ticket at 17 euros.", "17 euros", True),
        (QUOTE, "The garage sells a day ticket at 17 euros.", "21 euros", False),
        (QUOTE, "A dog costs 17 euros.", "17 euros", False),
    ],
)
def test_another_version_has_the_words_of_the_quote_and_is_not_on_the_page(
    quote: str, chunk: str, answer: str, wanted: bool
) -> None:
    assert bool(other_version(quote, [chunk], bare(PAGE), answer)) == wanted
    assert other_version(quote, [chunk], "", answer) == "", "without the page nothing is known"


@given(st.integers(0, len(PAGE)), st.integers(0, len(PAGE)))
def test_no_part_of_a_page_is_another_version_of_it(one: int, other: int) -> None:
    part = PAGE[min(one, other) : max(one, other)]
    words = part.split(" ")
    inner = " ".join(words[1:-1])
    assert other_version(QUOTE, [inner], bare(PAGE)) == ""


@given(st.integers(10, len(QUOTE) - 10))
def test_a_border_inside_a_quote_is_seen_from_either_side(at: int) -> None:
    first, last = f"The garage has 120 places. {QUOTE[:at]}", f"{QUOTE[at:]} Bicycles are free."
    assert is_cut_between(QUOTE, [first, last], shortened=True)
    assert is_cut_between(QUOTE, [first], shortened=False) == (len("".join(QUOTE[:at].split())) >= LEAST)
    assert not is_cut_between(QUOTE, ["Bicycles are parked free of charge."], shortened=False)
    assert not is_cut_between(QUOTE, [QUOTE[: at - 5], QUOTE[at + 5 :]], shortened=True)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["The garage has", "Bicycles are parked"], True),
        (["…has 120 places and…"], True),
        (["The garage has 120 places.", "Bicycles are parked free of charge."], False),
        (["places. A day ticket for", "ticket for the garage costs", "bought at the machine"], False),
        (["# Parking", "Bicycles are parked free of charge."], False),
        (["# Parking", "# Bicycles"], True),
        ([], False),
    ],
)
def test_chunks_are_shortened_where_most_stop_inside_a_line_and_begin_with_one(texts: list[str], wanted: bool) -> None:
    assert are_shortened([(text, PAGE) for text in texts]) == wanted


TABLE = (
    "# Prices\n\n| What | Price |\n|---|---|\n| Day | 14 euros |\n| Week | 60 euros |\n\n"
    "1. the date,\n2. the place,\n3. the sum.\n"
)


@pytest.mark.parametrize(
    ("quote", "chunk", "page", "wanted"),
    [
        (QUOTE, QUOTE[:50], PAGE, "a chunk ends"),
        (QUOTE, QUOTE[50:], PAGE, "a chunk begins"),
        ("| Week | 60 euros |", "| What | Price |\n|---|---|\n| Day | 14 euros |", TABLE, "a chunk ends"),
        ("| Day | 14 euros |", "| Week | 60 euros |", TABLE, "a chunk begins"),
        ("3. the sum.", "1. the date,\n2. the place,", TABLE, "a chunk ends"),
        (QUOTE, "The garage has 120 places.", PAGE, ""),
        (QUOTE, "Bicycles are parked free of charge.", PAGE, ""),
        ("It is green.", "It is red.", "It is red. It is green.", ""),
        (QUOTE, "Not of this page", PAGE, ""),
        (QUOTE, "", PAGE, ""),
    ],
)
def test_a_border_beside_a_passage_is_inside_its_sentence_list_or_table(
    quote: str, chunk: str, page: str, wanted: str
) -> None:
    said = border_beside(quote, chunk, page)
    assert said.startswith(wanted)
    assert bool(said) == bool(wanted)


@given(st.integers(1, len(PAGE)))
def test_a_chunk_that_has_a_passage_has_no_border_beside_it(more: int) -> None:
    assert border_beside(QUOTE, PAGE[: PAGE.index(QUOTE) + len(QUOTE) + more], PAGE) == ""


@pytest.mark.parametrize(
    ("lengths", "wanted"),
    [([200, 198, 200, 80], True), ([111, 338, 169, 196, 121, 64], False), ([25, 24, 26], True), ([], False)],
)
def test_texts_of_one_length_are_alike_in_characters_or_words(lengths: list[int], wanted: bool) -> None:
    assert are_of_one_length([" ".join(["x" * (1 + n)] * each) for n, each in enumerate(lengths)]) == wanted
