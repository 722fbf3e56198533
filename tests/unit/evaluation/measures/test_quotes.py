"""Quotes lose their marks for rows whose chunks have lost theirs, and for no other row."""

from __future__ import annotations

import asyncio
from typing import Any

from rag_harness.core.types import Case, Chunk, Evidence, Query
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.gold import gold_facts
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.answers import EvidenceRecall, as_shown
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.judging import RowJudge
from tests.unit.rows import make_chunk, make_row

CASE = Case(
    Query("q1", "How long?"),
    ground_truth="30 days",
    qrels={"returns.md": 1},
    evidence=(Evidence("returns.md", "- you have **30 days**"), Evidence("returns.md", "| Zone 2 | €9 |")),
)
MARKED, PLAIN = "- you have **30 days**, [or more](x.md)\n\n| Zone 2 | €9 |", "you have 30 days, or more\n\nZone 2 €9"


def row(*texts: str, markup: str | None = None) -> ExperimentResult:
    where = {"filename": "returns.md", "section": "", "markup": markup}
    return make_row(
        retrieved_chunks=[make_chunk(f"returns.md#{n}", text=t, metadata=where) for n, t in enumerate(texts)]
    )


def recall(given: ExperimentResult) -> float | None:
    return EvidenceRecall().score(CASE, given).value


def test_evidence_is_found_in_chunks_without_marks_that_say_so() -> None:
    assert recall(row(PLAIN, markup="taken off")) == 1.0
    assert recall(row("you have 30 days", markup="taken off")) == 0.5
    assert recall(row(MARKED)) == 1.0


def test_of_other_rows_nothing_changes() -> None:
    assert recall(row(PLAIN)) == 0.0
    assert as_shown(CASE, row(PLAIN)) is CASE
    assert as_shown(CASE, row()) is CASE


def test_a_chunk_of_gold_between_them_does_not_bring_the_marks_back() -> None:
    both = (*row(PLAIN).retrieved_chunks, *row(PLAIN, markup="taken off").retrieved_chunks)
    assert recall(make_row(retrieved_chunks=both)) == 1.0


def test_gold_is_looked_for_in_the_same_words() -> None:
    held = Chunk("returns.md#0", "returns.md", PLAIN)
    facts = gold_facts(CASE, row(PLAIN, markup="taken off"), CorpusView([held]))
    assert {fact.place for fact in facts.quotes} == {"in context"}
    missed = gold_facts(CASE, row("else", markup="taken off"), CorpusView([held]))
    assert {fact.place for fact in missed.quotes} == {"not found"}


def test_a_judge_is_given_quotes_as_the_chunks_say_them() -> None:
    seen: list[Any] = []

    class Judge:
        name, model, revision = "test", "test/judge", "1"
        asks_model, deterministic, reads_conversation = False, False, True

        def opinion(self, material: Any, asks: Any) -> Any:
            seen.append(material.quotes)
            raise ValueError("no opinion")

    judging = RowJudge(Judge, lambda *_: [], 10.0)
    measure: Any = measure_named("context_precision")
    for given in (row(PLAIN, markup="taken off"), row(MARKED)):
        asyncio.run(judging.row(given, CASE, [measure], lambda *_: None))
    assert seen == [("you have 30 days", "Zone 2 €9"), ("- you have **30 days**", "| Zone 2 | €9 |")]
