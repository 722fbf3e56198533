"""What an experiment could have found, looked up by what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_harness.core.types import Chunk, Document
from rag_harness.diagnosis.corpus_view import CorpusView, bare, is_part_of
from tests.unit.diagnosis.made_up import CASES, PAGES, chunks_of, halved

TENT = PAGES[2]
TITLE, MADE, QUOTE = "# The tent", "Every tent is made by hand.", CASES[2].evidence[0].quote
TITLE_CHUNK, MADE_CHUNK, GOLD = chunks_of([TENT])


def page(text: str = "Some text.", name: str = "page.md", **metadata: str) -> Document:
    return Document(name, text, "Title", metadata)


def test_a_passage_is_the_paragraph_that_the_quote_stands_in() -> None:
    shelf = CorpusView(None, PAGES)
    assert shelf.passage("tent.md", "The tent") == TITLE
    assert shelf.passage("tent.md", "is  made\nby hand") == MADE
    assert shelf.passage("tent.md", "within 33 days") == QUOTE
    assert shelf.passage("tent.md", f"by hand. {QUOTE[:9]}") == f"{MADE}\n\n{QUOTE}"
    assert shelf.passage("tent.md", "not on the page") == "not on the page"
    assert shelf.passage("nowhere.md", "The tent") == "The tent"
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
