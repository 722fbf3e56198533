"""What gold and row say together: where the evidence got lost, and what is outdated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.types import Chunk, Evidence
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.gold import doubt_of, gold_facts
from rag_harness.records.row import ExperimentResult
from tests.unit.derived.attribution.made_up import CASES, OLD, PAGES, chunks_of, halved
from tests.unit.rows import make_chunk, make_row

CHUNKS = {chunk.chunk_id: chunk for chunk in chunks_of(PAGES)}
GOLD, BESIDE, STALE = "tent.md#chunk_2", "tent.md#chunk_1", f"{OLD}#chunk_2"
TENT, LAMP = CASES[2], CASES[0]


def row(context: list[str], candidates: list[str] | None = None, **changes: Any) -> ExperimentResult:
    given = [make_chunk(chunk_id, text=CHUNKS[chunk_id].text) for chunk_id in context]
    found = [{"chunk_id": chunk_id, "score": 0.1} for chunk_id in candidates or context]
    return make_row(retrieved_chunks=given, candidates=found, **changes)


def shelf(*chunks: Chunk) -> CorpusView:
    return CorpusView(chunks or list(CHUNKS.values()), PAGES)


@pytest.mark.parametrize(
    ("context", "candidates", "place", "rank"),
    [
        ([BESIDE, GOLD], None, "in context", 2),
        ([BESIDE], [BESIDE, "desk.md#chunk_0", GOLD], "ranked below k", 3),
        ([BESIDE, "desk.md#chunk_0"], [GOLD, BESIDE, "desk.md#chunk_0"], "lost in reranking", 1),
        ([BESIDE, "desk.md#chunk_0"], [BESIDE, GOLD, "desk.md#chunk_0"], "lost in reranking", 2),
        ([BESIDE, "desk.md#chunk_0"], [BESIDE, "desk.md#chunk_0", GOLD], "ranked below k", 3),
        ([BESIDE], None, "not found", None),
    ],
)
def test_where_a_quote_got_lost(context: list[str], candidates: list[str], place: str, rank: int | None) -> None:
    (fact,) = gold_facts(TENT, row(context, candidates), shelf()).needed
    assert (fact.place, fact.rank) == (place, rank)
    assert (fact.position, fact.sent) == (2 if place == "in context" else None, (0, 0))


def test_a_quote_that_no_chunk_holds_whole_is_cut_and_one_without_its_page_is_not_in_the_index() -> None:
    others = [chunk for chunk in CHUNKS.values() if chunk.chunk_id != GOLD]
    cut = CorpusView([*others, *halved(CHUNKS[GOLD])], PAGES)
    assert gold_facts(TENT, row([BESIDE]), cut).lost[0].place == "cut"
    assert (
        gold_facts(TENT, row(["desk.md#chunk_0"]), shelf(CHUNKS["desk.md#chunk_0"])).lost[0].place == "not in the index"
    )


def test_where_nobody_knows_the_index_it_is_only_missing() -> None:
    assert gold_facts(TENT, row(["desk.md#chunk_0"]), None).lost[0].place == "missing"
    assert gold_facts(TENT, row(["desk.md#chunk_0"]), CorpusView(None, PAGES)).lost[0].place == "missing"


def test_a_page_that_came_without_the_quote_says_how_much_of_it_came() -> None:
    text, whole = CHUNKS[BESIDE].text[:-4], len(PAGES[2].text)
    short = make_row(retrieved_chunks=[make_chunk(BESIDE, text=text)], candidates=[])
    for known, sent in ((None, (len(text), 0)), (CorpusView(None, PAGES), (len(text), whole))):
        (lost,) = gold_facts(TENT, short, known).lost
        assert (lost.place, lost.sent) == ("without", sent)


def test_a_whole_chunk_of_a_page_without_the_quote_is_another_part() -> None:
    for known in (None, CorpusView(None, PAGES)):
        (lost,) = gold_facts(TENT, row([BESIDE]), known).lost
        assert lost.place == "another part"


@pytest.mark.parametrize("part", [slice(None, 45), slice(-45, None)])
def test_a_chunk_that_came_shorter_than_the_index_has_it_lost_the_quote(part: slice) -> None:
    """Where the index knows the whole chunk, the page is neither missing nor ranked too low."""
    text = CHUNKS[GOLD].text[part]
    for chunk_id in (GOLD, "tent.md#7"):
        short = make_row(retrieved_chunks=[make_chunk(chunk_id, text=text)], candidates=[])
        (lost,) = gold_facts(TENT, short, shelf()).lost
        assert (lost.place, lost.sent) == ("without", (45, len(CHUNKS[GOLD].text)))


@pytest.mark.parametrize("known", [shelf(), CorpusView(None, PAGES)])
def test_a_chunk_that_came_without_its_text_lost_the_quote(known: CorpusView) -> None:
    empty = make_row(retrieved_chunks=[make_chunk(GOLD, text="")], candidates=[{"chunk_id": GOLD, "score": 1.0}])
    (lost,) = gold_facts(TENT, empty, known).lost
    assert (lost.place, lost.sent[0]) == ("without", 0)


@pytest.mark.parametrize("name", ["hit-1", "tent.md"])
def test_a_page_is_known_by_its_text_where_a_service_has_names_of_its_own(name: str) -> None:
    sent = make_chunk(f"{name}#1", text=CHUNKS[GOLD].text[:40])
    (lost,) = gold_facts(TENT, make_row(retrieved_chunks=[sent], candidates=[]), CorpusView(None, PAGES)).lost
    assert (lost.place, lost.sent) == ("without", (40, len(PAGES[2].text)))
    other = make_chunk(f"{name}#1", text="Tents are sold in the shop at the harbour, and there alone.")
    (lost,) = gold_facts(TENT, make_row(retrieved_chunks=[other], candidates=[]), CorpusView(None, PAGES)).lost
    assert lost.place == ("missing" if name == "hit-1" else "another part")


def test_the_end_of_a_page_that_the_index_lacks_is_not_in_the_index() -> None:
    first = [chunk for chunk in CHUNKS.values() if chunk.doc_id == "tent.md" and chunk.chunk_id != GOLD]
    (lost,) = gold_facts(TENT, row([BESIDE]), CorpusView(first, PAGES)).lost
    assert lost.place == "left out"


def test_an_index_of_shortened_chunks_is_no_border_through_the_quote() -> None:
    """Of a quote that a border cuts, both pieces are there."""
    others = [chunk for chunk in CHUNKS.values() if chunk.chunk_id != GOLD]
    first, _ = halved(CHUNKS[GOLD])
    came = make_row(retrieved_chunks=[make_chunk(first.chunk_id, text=first.text)], candidates=[])
    (lost,) = gold_facts(TENT, came, CorpusView([*others, first], PAGES)).lost
    assert (lost.place, lost.sent) == ("without", (len(first.text), len(PAGES[2].text)))


def test_without_quotes_the_relevant_page_stands_for_them() -> None:
    case = replace(TENT, evidence=())
    assert gold_facts(case, row([GOLD]), shelf()).lost == ()
    assert [fact.place for fact in gold_facts(case, row([BESIDE]), shelf()).lost] == ["without"]
    assert gold_facts(case, row(["desk.md#chunk_0"]), shelf()).lost[0].place == "not found"


def test_what_only_the_outdated_page_says_is_stale() -> None:
    told = row([STALE, "lamp.md#chunk_2"], llm_answer="Within 14 days of 31 [Source 1].", query=LAMP.query.text)
    facts = gold_facts(LAMP, told, shelf())
    assert facts.superseded == (OLD,)
    assert facts.stale == (("14", OLD),)


def test_an_outdated_page_is_no_matter_where_the_question_is_about_it_or_about_something_else() -> None:
    told = row([STALE], llm_answer="Within 14 days.")
    about_it = replace(LAMP, qrels={OLD: 1}, evidence=(Evidence(OLD, CHUNKS[STALE].text),))
    assert gold_facts(about_it, told, shelf()).superseded == ()
    elsewhere = replace(TENT, evidence=(Evidence("tent.md", "Made by hand since 1980."),))
    assert gold_facts(elsewhere, told, shelf()).superseded == ()


def test_pages_that_say_themselves_that_they_are_outdated_need_no_metadata() -> None:
    old = make_chunk("lamp-2024.md#0", text="You may return the lamp within 14 days of delivery.")
    new = make_chunk("lamp.md#0", text="You may return the lamp within 31 days of delivery.")
    told = make_row(retrieved_chunks=[old, new], llm_answer="14 days", query=LAMP.query.text)
    assert gold_facts(LAMP, told, None).stale == (("14", "lamp-2024.md"),)


def test_evidence_that_has_nothing_of_the_ground_truth_is_doubtful() -> None:
    assert doubt_of(TENT) == ""
    other = (Evidence("desk.md", "Our shops open on Sunday mornings at 9:00."),)
    assert "none of its figures" in doubt_of(replace(TENT, evidence=other))
    assert doubt_of(replace(TENT, evidence=())) == ""
    # The question's own words are in both, and carry nothing.
    same = (Evidence("tent.md", "How to return the tent: see overleaf."),)
    assert "0% of what the ground truth adds" in doubt_of(replace(TENT, evidence=same))
    # A sum has figures that no page has; its words are enough.
    total = replace(TENT, ground_truth="In sum €40 for three delivery dates", query=replace(TENT.query, text="Cost?"))
    assert doubt_of(replace(total, evidence=(Evidence("t.md", "each further delivery date costs €20"),))) == ""


def test_a_case_without_any_gold_says_so() -> None:
    bare = replace(TENT, ground_truth="", evidence=(), qrels={})
    assert gold_facts(bare, row([BESIDE]), shelf()).nothing == "the case has neither ground truth nor evidence"
    for known in (replace(bare, ground_truth="33 days"), replace(bare, evidence=TENT.evidence)):
        assert gold_facts(known, row([BESIDE]), shelf()).nothing == ""
    assert gold_facts(replace(bare, answerable=False), row([BESIDE]), shelf()).nothing == ""


def test_a_chunk_that_came_as_long_as_the_index_has_it_was_not_shortened() -> None:
    loud = make_row(retrieved_chunks=[make_chunk("x.md#1", text=CHUNKS[GOLD].text.upper())], candidates=[])
    assert gold_facts(TENT, loud, shelf()).lost[0].place == "not found"


def test_what_was_given_is_counted_and_known_to_carry_the_gold() -> None:
    given = gold_facts(TENT, row([BESIDE, GOLD]), shelf())
    assert (given.given, given.carried) == (2, True)
    given = gold_facts(TENT, row([BESIDE]), shelf())
    assert (given.given, given.carried) == (1, False)


def test_a_quarter_of_the_words_keeps_evidence_from_doubt() -> None:
    case = replace(TENT, ground_truth="Green heavy wooden boxes", evidence=(Evidence("a.md", "A green thing."),))
    assert doubt_of(case) == ""
    case = replace(case, ground_truth="Green heavy wooden painted boxes")
    assert doubt_of(case) == "the evidence carries 20% of what the ground truth adds to the question"
