"""One thing changed at a time, and nothing where it would change nothing."""

from __future__ import annotations

import re
from dataclasses import replace

from rag_harness.core.types import Hit
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.gold import gold_facts
from rag_harness.diagnosis.interventions import altered, hits_of
from tests.unit.diagnosis.made_up import CASES, OLD, PAGES, halved
from tests.unit.diagnosis.test_gold import BESIDE, CHUNKS, GOLD, LAMP, STALE, TENT, row, shelf
from tests.unit.rows import make_chunk, make_row

OTHER = "desk.md#chunk_0"


def ids(hits: list[Hit]) -> list[str]:
    return [hit.chunk.chunk_id for hit in hits]


def changed(context: list[str], case=TENT, known: CorpusView | None = None) -> dict[str, list[str]]:  # type: ignore[no-untyped-def]
    found, known = row(context), known or shelf()
    return {name: ids(hits) for name, hits in altered(found, gold_facts(case, found, known), known).items()}


def test_missing_gold_takes_the_place_of_the_last_chunk_that_is_none() -> None:
    assert changed([BESIDE, OTHER])["+gold_context"] == [BESIDE, GOLD]
    assert changed([])["+gold_context"] == [GOLD]


def test_gold_that_is_there_can_be_put_first_and_alone() -> None:
    found = changed([BESIDE, GOLD, OTHER])
    assert found == {
        "+no_context": [],
        "+gold_at_both_ends": [GOLD, BESIDE, OTHER, GOLD],
        "+no_distractors": [GOLD],
    }
    assert changed([GOLD]) == {"+no_context": [], "+gold_at_both_ends": [GOLD, GOLD]}


def test_a_passage_is_given_without_the_rest_of_its_chunk_where_it_has_one() -> None:
    whole = replace(CHUNKS[GOLD], text=f"Tents are light. {CHUNKS[GOLD].text} Wet ones are not taken back.")
    found = make_row(retrieved_chunks=[make_chunk(GOLD, text=whole.text)])
    known = CorpusView([whole], PAGES)
    hits = altered(found, gold_facts(TENT, found, known), known)["+passages_alone"]
    assert [hit.chunk.text for hit in hits] == [TENT.evidence[0].quote] * 2
    assert "+passages_alone" not in changed([BESIDE])  # what the model was not given is not for the prompt to lose


def test_outdated_pages_are_taken_out() -> None:
    assert changed([STALE, "lamp.md#chunk_2"], LAMP)["+current_versions"] == ["lamp.md#chunk_2"]


def test_a_cut_quote_is_given_as_the_paragraph_of_its_page() -> None:
    others = [chunk for chunk in CHUNKS.values() if chunk.chunk_id != GOLD]
    known = CorpusView([*others, *halved(CHUNKS[GOLD])], PAGES)
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, known), known)["+gold_context"]
    assert hits[-1].chunk.text == CHUNKS[GOLD].text


def test_without_pages_the_quote_itself_is_given() -> None:
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, None), None)["+gold_context"]
    assert [hit.chunk.text for hit in hits] == [TENT.evidence[0].quote]


def test_without_quotes_all_of_the_page_is_given() -> None:
    case = replace(CASES[3], evidence=())
    assert changed([BESIDE], case)["+gold_context"] == [f"desk.md#chunk_{n}" for n in range(3)]


def test_an_outdated_page_that_the_row_says_is_in_no_index() -> None:
    assert OLD not in {chunk_id.partition("#")[0] for chunk_id in changed([STALE, GOLD])["+no_distractors"]}


def test_what_is_put_into_a_context_says_that_it_is_gold() -> None:
    found = row([BESIDE, OTHER])
    hits = altered(found, gold_facts(TENT, found, shelf()), shelf())["+gold_context"]
    assert [(hit.rank, hit.score, hit.source) for hit in hits] == [(1, 0.5, "dense"), (2, 1.0, "gold")]
    (alone,) = altered(row([]), gold_facts(TENT, row([]), None), None)["+gold_context"]
    assert alone.chunk.doc_id == "tent.md"
    assert re.fullmatch(r"tent\.md#gold-[0-9a-f]{8}", alone.chunk.chunk_id)


def test_a_context_is_given_as_it_was() -> None:
    found = row([BESIDE, GOLD])
    assert [hit.chunk for hit in hits_of(found, shelf())] == [CHUNKS[BESIDE], CHUNKS[GOLD]]
    unknown = hits_of(found, None)
    assert [hit.rank for hit in unknown] == [1, 2]
    assert [(hit.chunk.chunk_id, hit.chunk.text) for hit in unknown] == [
        (chunk_id, CHUNKS[chunk_id].text) for chunk_id in (BESIDE, GOLD)
    ]
    assert unknown[0].chunk.section == ("Returns", "Windows")
    short = make_row(retrieved_chunks=[make_chunk(GOLD, text="You may")])
    assert [hit.chunk.text for hit in hits_of(short, shelf())] == ["You may"]


def test_more_gold_than_the_context_has_places_for_is_given_all() -> None:
    both = replace(TENT, evidence=(*TENT.evidence, *CASES[3].evidence), ground_truth="33 and 34 days of delivery")
    assert changed([BESIDE], both)["+gold_context"] == [GOLD, "desk.md#chunk_2"]
    assert changed([BESIDE, OTHER, "sofa.md#chunk_0"], both)["+gold_context"] == [BESIDE, GOLD, "desk.md#chunk_2"]
    assert changed([OTHER, GOLD, BESIDE], both)["+gold_context"] == [OTHER, GOLD, "desk.md#chunk_2"]


def test_gold_that_another_page_says_too_is_taken_from_its_own() -> None:
    copy = replace(CHUNKS[GOLD], chunk_id="a.md#0", doc_id="a.md")
    found = row([BESIDE])
    hits = altered(found, gold_facts(TENT, found, shelf()), CorpusView([copy, *CHUNKS.values()], PAGES))[
        "+gold_context"
    ]
    assert ids(hits) == [GOLD]
