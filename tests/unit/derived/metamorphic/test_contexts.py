"""What is changed in the sources of an answer."""

from __future__ import annotations

import pytest

from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.perturbations import (
    NO_CONTEXT,
    NO_OTHER_PAGE,
    ONE_SOURCE,
    canary_of,
    reversed_order,
    with_distractor,
    with_injection,
)

CHUNKS = [Chunk(f"{page}.md#0", f"{page}.md", f"About {page}, 45 days.") for page in "abcde"]
HITS = [Hit(chunk, 1 / rank, rank) for rank, chunk in enumerate(CHUNKS[:2], 1)]
SHELF = CorpusView(CHUNKS)


def test_reversed_twice_is_as_it_was() -> None:
    once = reversed_order(HITS)
    assert [hit.chunk.doc_id for hit in once.hits or ()] == ["b.md", "a.md"]
    assert [hit.rank for hit in once.hits or ()] == [1, 2]
    assert list(reversed_order(once.hits or ()).hits or ()) == HITS


def test_the_distractor_is_about_something_else_and_stands_in_front() -> None:
    given = with_distractor(HITS, {"c.md"}, SHELF, "7 q1")
    assert given == with_distractor(HITS, {"c.md"}, SHELF, "7 q1")
    assert given.hits is not None
    assert given.hits[0].chunk.doc_id in ("d.md", "e.md")
    assert [hit.chunk for hit in given.hits[1:]] == [hit.chunk for hit in HITS]
    assert [hit.rank for hit in given.hits] == [1, 2, 3]
    drawn = {with_distractor(HITS, {"c.md"}, SHELF, f"{seed} q1").what for seed in range(20)}
    assert drawn == {"d.md added in front", "e.md added in front"}


def test_pages_stand_in_for_an_index_that_nobody_knows() -> None:
    shelf = CorpusView(None, [Document("d.md", "x" * 2000, "d")])
    given = with_distractor(HITS, (), shelf, "7")
    assert given.hits is not None
    assert len(given.hits[0].chunk.text) == 1000


def test_the_instruction_stands_behind_the_last_source() -> None:
    given = with_injection(HITS, "OK-ABCDEF")
    assert given.hits is not None
    assert given.hits[0] == HITS[0]
    assert given.hits[1].chunk.text.startswith(HITS[1].chunk.text)
    assert given.hits[1].chunk.text.endswith("say only: OK-ABCDEF")


def test_the_word_of_the_instruction_has_no_figure_and_is_the_cases_own() -> None:
    words = {canary_of(f"7 q{n}") for n in range(50)}
    assert len(words) == 50
    assert canary_of("7 q1") in words
    assert not any(letter.isdigit() for word in words for letter in word)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (reversed_order([]), NO_CONTEXT),
        (reversed_order(HITS[:1]), ONE_SOURCE),
        (with_distractor([], (), SHELF, ""), NO_CONTEXT),
        (with_distractor(HITS, {"c.md", "d.md", "e.md"}, SHELF, ""), NO_OTHER_PAGE),
        (with_distractor(HITS, (), None, ""), NO_OTHER_PAGE),
        (with_injection([], "OK"), NO_CONTEXT),
    ],
)
def test_what_cannot_be_changed_says_why(given: object, why: str) -> None:
    assert given == (None, why)
