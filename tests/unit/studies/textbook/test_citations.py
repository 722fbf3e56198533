"""What an answer cites: sources by number, chapters by name, and what leads nowhere."""

from __future__ import annotations

import pytest

from rag_harness.core.types import Chunk
from rag_harness.pipelines.generation import read_answer
from rag_harness.studies.textbook import Cited, cited
from rag_harness.studies.textbook_retrieval import book_place_of, different_titles
from tests.unit.studies.textbook.hits import near, section

CONTEXT = near(
    [
        section("a", 1, 2, "Nodes and the graph", "Names"),
        section("b", 2, 2),
        section("c", 1, 3, "Services"),
        section("d", 1, 3),
        section("e", 0, 1),
    ],
    [0.9, 0.8, 0.7, 0.6, 0.5],
)


def cite(text: str) -> Cited:
    quoted = text.replace('"', "'")
    return cited(read_answer(f'{{"answer": "{quoted}"}}', len(CONTEXT), False), CONTEXT)


@pytest.mark.parametrize(
    ("text", "sources", "invalid", "outcome"),
    [
        ("Yes [Source 1].", (1,), (), "cited"),
        ("Yes [Source 3, Source 1].", (3, 1), (), "cited"),
        ("See Module 1, Chapter 2.", (1,), (), "cited"),
        ("See module 1 chapter 2 and MODULE 2: CHAPTER 2.", (1, 2), (), "cited"),
        ("See Chapter 1.", (5,), (), "cited"),  # Module 0, Chapter 1: no other module has one here
        ("See Chapter 3.", (3,), (), "cited"),  # two sources of one chapter: the better one
        ("Yes [Source 4], as Chapter 3 says.", (4,), (), "cited"),
        ("Yes [Source 1], and Chapter 3 too.", (1, 3), (), "cited"),
        ("See Chapter 2.", (), (), "none"),  # of Module 1 or of Module 2?
        ("See Module 9, Chapter 9.", (), (0,), "invalid"),
        ("See Chapter 9, and again Chapter 9.", (), (0,), "invalid"),
        ("Yes [Source 1] (Module 3, Chapter 2).", (1,), (0,), "invalid"),
        ("Yes [Source 8].", (), (8,), "invalid"),
        ("Yes.", (), (), "none"),
        ("Chapters 1 and 2 of a module", (), (), "none"),
    ],
)
def test_cited(text: str, sources: tuple[int, ...], invalid: tuple[int, ...], outcome: str) -> None:
    found = cite(text)
    assert found.answer.citations == sources
    assert found.answer.invalid_citations == invalid
    assert [link.source for link in found.links] == list(sources)
    assert (found.decision.outcome, found.decision.value) == (outcome, len(sources))


def test_links_lead_to_headings() -> None:
    links = cite("Yes [Source 1] [Source 2].").links
    assert [link.url for link in links] == ["/module-1/c2#names", "/module-2/c2"]
    assert [link.title for link in links] == ["Nodes and the graph > Names", "Module 2: M2 > Chapter 2: Title 2"]


def test_a_decision_names_what_leads_nowhere() -> None:
    assert cite("Yes [Source 8], Module 9, Chapter 9.").decision.reason == (
        "leads nowhere: Source 8, Module 9, Chapter 9"
    )
    assert cite("Chapter 2.").decision.reason == "in several modules: Chapter 2"


def test_places() -> None:
    place = book_place_of(section("x", 1, 2, "Nodes"))
    assert (place.module, place.chapter, place.path) == (1, 2, ("Module 1: M1", "Chapter 2: Title 2", "Nodes"))
    by_path = book_place_of(Chunk("m#1", "module-3/chapter-4-maps.md", "x", section=("Maps",)))
    assert (by_path.module, by_path.chapter, by_path.url) == (3, 4, "/module-3/chapter-4-maps")
    nowhere = book_place_of(Chunk("n#1", "notes.md", "x"))
    assert (nowhere.module, nowhere.chapter, nowhere.path, nowhere.url) == (None, None, ("notes.md",), "/notes")
    opening = Chunk("o#1", "notes.md", "x", section=("Notes",), metadata={"heading": "Introduction", "url": "/n#notes"})
    assert (book_place_of(opening).path, book_place_of(opening).url) == (("Notes", "Introduction"), "/n#notes")
    odd = Chunk("p#1", "notes.md", "x", metadata={"module": True, "chapter": "four", "title": "T"})
    assert (book_place_of(odd).module, book_place_of(odd).chapter, book_place_of(odd).path) == (None, None, ("T",))


def test_different_titles() -> None:
    chunks = [section("a", 1, 1, "H"), section("b", 1, 1, "H"), section("c", 1, 1, "G"), section("d", 1, 2, "F")]
    assert different_titles(chunks, 2) == ["Chapter 1: Title 1 > H", "Chapter 1: Title 1 > G"]
    assert different_titles([], 3) == []
