"""What an experiment could have found, and what of a page was sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Chunk, Document
from rag_harness.diagnosis.corpus_view import (
    CorpusView,
    are_of_one_length,
    are_shortened,
    bare,
    border_beside,
    is_cut_between,
    is_part_of,
    other_version,
)
from tests.unit.diagnosis.made_up import CASES, PAGES, chunks_of, halved

# What an experiment could have found, looked up by what it says.

TENT = PAGES[2]
TITLE, MADE, QUOTE = "# The tent", "Every tent is made by hand.", CASES[2].evidence[0].quote
TITLE_CHUNK, MADE_CHUNK, GOLD = chunks_of([TENT])


def page(text: str = "Some text.", name: str = "page.md", **metadata: str) -> Document:
    return Document(name, text, "Title", metadata)


def test_a_passage_is_the_paragraph_that_the_quote_stands_in() -> None:
    view = CorpusView(None, PAGES)
    assert view.passage("tent.md", "The tent") == TITLE
    assert view.passage("tent.md", "is  made\nby hand") == MADE
    assert view.passage("tent.md", "within 33 days") == QUOTE
    assert view.passage("tent.md", f"by hand. {QUOTE[:9]}") == f"{MADE}\n\n{QUOTE}"
    assert view.passage("tent.md", "not on the page") == "not on the page"
    assert view.passage("nowhere.md", "The tent") == "The tent"
    assert CorpusView(None, [page("All of a page.")]).passage("page.md", "of a") == "All of a page."


@pytest.mark.parametrize(("end", "is_before"), [(0, True), (1, False), (-1, True)])
def test_an_index_that_ends_where_a_quote_begins_lacks_it(end: int, is_before: bool) -> None:
    begin = TENT.text.index(QUOTE) + end
    first = Chunk("tent.md#0", "tent.md", TENT.text[:begin], 0, begin)
    assert CorpusView([first], PAGES).ends_before("tent.md", QUOTE) is is_before


def test_an_index_without_the_page_and_one_without_places_end_before_nothing() -> None:
    assert not CorpusView([], PAGES).ends_before("tent.md", QUOTE)
    assert not CorpusView([replace(MADE_CHUNK, start=0, end=0)], PAGES).ends_before("tent.md", QUOTE)
    assert not CorpusView([MADE_CHUNK], PAGES).ends_before("tent.md", "not on the page")


def test_pieces_are_the_chunks_that_hold_a_part_of_a_quote() -> None:
    first, rest = halved(GOLD)
    assert CorpusView([rest, TITLE_CHUNK, MADE_CHUNK, first], PAGES).pieces("tent.md", QUOTE) == [rest, first]
    before, behind = replace(MADE_CHUNK, end=GOLD.start), replace(MADE_CHUNK, start=GOLD.end, end=GOLD.end + 5)
    assert CorpusView([before, replace(behind, chunk_id="x")], PAGES).pieces("tent.md", QUOTE) == []
    assert CorpusView([GOLD], PAGES).pieces("tent.md", "not on the page") == []


@pytest.mark.parametrize(
    ("texts", "is_cut"),
    [
        (("It is told: abc def", "ghi jkl. It goes on."), True),
        (("It is told: abc", "def ghi", "jkl. It goes on."), True),
        (("It is told: abc", "ghi", "jkl. It goes on."), False),
        (("It is told: abc def",), False),
        (("ghi jkl. It goes on.",), False),
        (("It is told: abc def", "hi jkl. It goes on."), False),
        ((), False),
    ],
)
def test_a_quote_is_cut_where_the_ends_of_chunks_make_it_whole(texts: tuple[str, ...], is_cut: bool) -> None:
    chunks = [Chunk(f"a.md#{n}", "a.md", text, index=n) for n, text in enumerate(texts)]
    assert CorpusView(chunks).is_cut("a.md", "abc def ghi jkl") is is_cut


WHOLE = bare("The first of these words, and the others, say what anybody may return.")


@pytest.mark.parametrize(
    ("text", "is_part"),
    [
        ("the <b>others</b>,\nsay what Anybody may", True),
        ("x the others say what anybody may return", True),  # marks in front of it: most of its end is enough
        ("the others say what anybody may return x", True),
        ("xxxxxxxx what anybody may return", False),
        ("xxxxxxxxxx what anybody xxxxxxxxxx", False),
        ("and the others say what anyb", False),  # 22 characters are most of 28
        ("and the others say what anybo", False),
        ("and the others say what anybod", True),  # 24 of 30
        ("nothing of it is there … the others say what anybody may return", True),
        ("nothing of it is there ... the others say what anybody may return", True),
        ("what anybody … may return", False),
        ("", False),
    ],
)
def test_most_of_a_text_from_either_end_makes_it_a_part(text: str, is_part: bool) -> None:
    assert is_part_of(text, WHOLE) is is_part


def test_a_text_of_which_the_last_words_alone_are_the_same_is_no_part() -> None:
    assert not is_part_of("Nobody has ever told us how it goes that they may return", WHOLE)


def test_a_page_is_what_is_known_of_it() -> None:
    assert CorpusView([GOLD], PAGES).page_text("tent.md") == TENT.text
    assert CorpusView([GOLD, MADE_CHUNK]).page_text("tent.md") == f"{MADE}\n{QUOTE}"
    assert CorpusView(None).page_text("tent.md") == ""


def test_which_pages_are_outdated_and_what_replaced_them() -> None:
    assert CorpusView(None, PAGES).superseded == {"old-lamp.md": "lamp.md"}
    assert CorpusView(chunks_of(PAGES)).superseded == {"old-lamp.md": "lamp.md"}
    by_name, by_stem = page(name="c.md", supersedes="b.md"), page(name="e.md", supersedes="d")
    alone = page(name="f.md", supersedes="nowhere", status="current")
    archived = page(name="a.md", status="Archived")
    pages = [archived, page(name="b.md"), by_name, page(name="d.md"), by_stem, alone]
    assert CorpusView(None, pages).superseded == {"a.md": "", "b.md": "c.md", "d.md": "e.md"}


# What was sent of a page, held against the page.

SENT_QUOTE = "A day ticket for the garage costs **14 euros** and is bought at the machine by the lift."
ROW = "| Price | €119 | €179 |"
LEAST = int(0.15 * len("".join(SENT_QUOTE.split())))
PAGE = f"# Parking\n\nThe garage has 120 places.\n\n{SENT_QUOTE}\n\n{ROW}\n\nBicycles are parked free of charge.\n"


@pytest.mark.parametrize(
    ("quote", "chunk", "answer", "wanted"),
    [
        (SENT_QUOTE, SENT_QUOTE.replace("14", "17"), "", True),
        (SENT_QUOTE, SENT_QUOTE.replace("**", ""), "", False),
        (SENT_QUOTE, SENT_QUOTE[:50], "", False),
        (SENT_QUOTE, SENT_QUOTE.replace("euros", "dollars"), "", True),
        (ROW, "| Price | €122 | €182 |", "", True),
        (SENT_QUOTE, "Bicycles are parked free of charge.", "", False),
        (SENT_QUOTE, "The garage sells a day ticket at 17 euros.", "17 euros", True),
        (SENT_QUOTE, "The garage sells a day ticket at 17 euros.", "21 euros", False),
        (SENT_QUOTE, "A dog costs 17 euros.", "17 euros", False),
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
    assert other_version(SENT_QUOTE, [inner], bare(PAGE)) == ""


@given(st.integers(10, len(SENT_QUOTE) - 10))
def test_a_border_inside_a_quote_is_seen_from_either_side(at: int) -> None:
    first, last = (
        f"The garage has 120 places. {SENT_QUOTE[:at]}",
        f"{SENT_QUOTE[at:]} Bicycles are free.",
    )
    assert is_cut_between(SENT_QUOTE, [first, last], shortened=True)
    assert is_cut_between(SENT_QUOTE, [first], shortened=False) == (len("".join(SENT_QUOTE[:at].split())) >= LEAST)
    assert not is_cut_between(SENT_QUOTE, ["Bicycles are parked free of charge."], shortened=False)
    assert not is_cut_between(SENT_QUOTE, [SENT_QUOTE[: at - 5], SENT_QUOTE[at + 5 :]], shortened=True)


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
        (SENT_QUOTE, SENT_QUOTE[:50], PAGE, "a chunk ends"),
        (SENT_QUOTE, SENT_QUOTE[50:], PAGE, "a chunk begins"),
        ("| Week | 60 euros |", "| What | Price |\n|---|---|\n| Day | 14 euros |", TABLE, "a chunk ends"),
        ("| Day | 14 euros |", "| Week | 60 euros |", TABLE, "a chunk begins"),
        ("3. the sum.", "1. the date,\n2. the place,", TABLE, "a chunk ends"),
        (SENT_QUOTE, "The garage has 120 places.", PAGE, ""),
        (SENT_QUOTE, "Bicycles are parked free of charge.", PAGE, ""),
        ("It is green.", "It is red.", "It is red. It is green.", ""),
        (SENT_QUOTE, "Not of this page", PAGE, ""),
        (SENT_QUOTE, "", PAGE, ""),
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
    assert border_beside(SENT_QUOTE, PAGE[: PAGE.index(SENT_QUOTE) + len(SENT_QUOTE) + more], PAGE) == ""


@pytest.mark.parametrize(
    ("lengths", "wanted"),
    [([200, 198, 200, 80], True), ([111, 338, 169, 196, 121, 64], False), ([25, 24, 26], True), ([], False)],
)
def test_texts_of_one_length_are_alike_in_characters_or_words(lengths: list[int], wanted: bool) -> None:
    assert are_of_one_length([" ".join(["x" * (1 + n)] * each) for n, each in enumerate(lengths)]) == wanted
