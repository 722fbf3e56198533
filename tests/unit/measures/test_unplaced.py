"""Chunks of no known document, as services have them: gold's quotes say where they are from, where gold is known."""

from __future__ import annotations

import pytest

from rag_harness.core.text.comparison import says_words, words_of
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures.answers import CitationRecall
from rag_harness.evaluation.measures.ranking import Recall
from rag_harness.records.document_ranking import document_in, ranking_of
from rag_harness.records.row import ExperimentResult, HitMetadata, RetrievedChunk
from tests.unit.rows import make_row

QUOTE = "You can return a **lamp** within 45 days."
CASE = Case(Query("q1", "lamp?"), qrels={"returns.md": 1}, evidence=(Evidence("returns.md", QUOTE),))


def chunk(text: str, document: str = "", name: str = "my_service:1") -> RetrievedChunk:
    return RetrievedChunk(chunk_id=name, text=text, score=1.0, metadata=HitMetadata(filename=document, section=""))


def of(*chunks: RetrievedChunk) -> ExperimentResult:
    return make_row().model_copy(update={"retrieved_chunks": chunks, "candidates": (), "ranking": None})


SAYS_IT = chunk("Policy: you can return a lamp within 45 days; see there.")
OTHER = chunk("You can return a lamp.", name="my_service:2")


def test_a_chunk_of_no_document_that_has_the_quote_is_of_its_page() -> None:
    assert document_in(CASE, SAYS_IT) == "returns.md"
    assert document_in(CASE, OTHER) == ""
    assert document_in(None, SAYS_IT) == ""
    assert Recall(5).score(CASE, of(OTHER, SAYS_IT)).value == 1.0
    assert Recall(1).score(CASE, of(OTHER, SAYS_IT)).value == 0.0


def test_a_chunk_of_a_known_document_stays_of_it() -> None:
    known = chunk(SAYS_IT.text, "other.md", "other.md#1")
    assert document_in(CASE, known) == "other.md"
    assert ranking_of(of(known), CASE) == ["other.md"]
    assert Recall(5).score(CASE, of(known)).value == 0.0


def test_without_gold_a_ranking_is_what_it_was() -> None:
    assert ranking_of(of(SAYS_IT)) == ["my_service:1"]


def test_a_citation_of_it_counts_too() -> None:
    cited = of(OTHER, SAYS_IT)
    assert CitationRecall().score(CASE, cited.model_copy(update={"citations": (2,)})).value == 1.0
    assert CitationRecall().score(CASE, cited.model_copy(update={"citations": (1,)})).value == 0.0


@pytest.mark.parametrize(
    ("text", "quote", "says"),
    [
        ("a b c d e", "b c d e", True),
        ("a b c d e", "b c d", False),
        ("a b c x d e", "b c d e", False),
        ("ab c d e", "b c d e", False),
        ("| A | **b** |\n|---|---|\n| C | [d](x.md) |", "a b c d", True),
        ("It’s 9.90 € in Zone-1!", "9.90 € in zone 1", True),
    ],
)
def test_words_one_after_the_other(text: str, quote: str, says: bool) -> None:
    assert says_words(text, quote) is says


@pytest.mark.parametrize(
    "text",
    [
        "Do this:\n1. Open it.\n 2. Close it in Zone 1.",
        "Do this: 1. Open it. 2) Close it in Zone 1.",
        "Do this. Open it. Close it in Zone 1.",
    ],
)
def test_numbers_of_a_list_are_marks_and_others_are_words(text: str) -> None:
    assert words_of(text) == ["do", "this", "open", "it", "close", "it", "in", "zone", "1"]


def test_what_is_no_word_is_none() -> None:
    assert words_of("# <b>One</b> _two_ ![three](a/b.png) `four`—5") == ["one", "two", "three", "four", "5"]
