"""Measures of answers, on answers whose value is known by hand."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

import pytest

from rag_harness.core.processes import checks_within
from rag_harness.core.registry import registered
from rag_harness.core.text.comparison import says_words, words_of
from rag_harness.core.types import Case, Evidence, Expectation, Query
from rag_harness.evaluation.measures import (
    ANSWERS,
    RankingMeasure,
    RowMeasure,
    Score,
    known_measures,
    measure_named,
    scored,
)
from rag_harness.evaluation.measures.answers import CitationRecall, TokenF1, normalised
from rag_harness.evaluation.measures.ranking import Recall
from rag_harness.records.document_ranking import document_in, ranking_of
from rag_harness.records.row import ExperimentResult, HitMetadata, RetrievedChunk, RowStage
from rag_harness.runs.gates import judge, parse_gate
from tests.long_answers import LONG_ANSWERS
from tests.unit.rows import make_row
from tests.unit.suite_tables import case_of, table_of

# Measures of answers, on answers whose value is known by hand.


def row(**changes: Any) -> ExperimentResult:
    plain = {
        "query_id": "q1",
        "experiment": "e3",
        "query": "?",
        "query_type": "direct",
        "retrieved_chunks": [],
        "candidates": [],
        "llm_answer": "",
        "raw_output": "",
        "citations": [],
        "invalid_citations": [],
        "abstained": False,
        "reasoning_steps": None,
        "ground_truth": "30 days",
        "context_reference": [],
        "metadata": {},
        "retrieval_time_ms": 1.0,
        "rerank_time_ms": None,
        "llm_time_ms": None,
        "ttft_ms": None,
        "total_time_ms": 1.0,
        "model": "",
        "profile": "mock",
        "mode": "auto",
        "dry_run": False,
        "usage": {},
        "status": "ok",
        "error": None,
        "fingerprint": "",
    }
    return ExperimentResult.model_validate(plain | changes)


def chunks(*texts: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {"chunk_id": f"{name}#{n}", "text": text, "score": 1.0, "metadata": {"filename": name, "section": ""}}
        for n, (name, text) in enumerate(texts)
    ]


def value(name: str, of: ExperimentResult, *quotes: str) -> float | None:
    """Return the value of a measure, None where it does not apply."""
    measure, case = measure_named(name), case_of(of)
    assert isinstance(measure, RowMeasure)
    case = Case(case.query, case.query_type, case.ground_truth, case.qrels, evidence(quotes), case.answerable)
    return None if measure.applies(case) else measure.score(case, of).value


def evidence(quotes: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(Evidence("a.md", quote) for quote in quotes)


def test_words_are_those_that_squad_compares() -> None:
    assert normalised("The U.S. can't ship [Source 1] an  item—[Sources 2, 3].") == ["us", "cant", "ship", "item"]


@pytest.mark.parametrize(
    ("answer", "truth", "f1"),
    [
        ("30 days", "30 days", 1.0),
        ("The 30 Days! [Source 1]", "30 days", 1.0),
        ("You have 30 days", "30 days", 2 / 3),
        ("30 30 days", "30 days", 0.8),
        ("30 30 days", "30 30 weeks", 2 / 3),
        ("14 weeks", "30 days", 0.0),
        ("", "30 days", 0.0),
        ("the", "A", 1.0),
        ("days", "the", 0.0),
    ],
)
def test_token_f1(answer: str, truth: str, f1: float) -> None:
    assert value("token_f1", row(llm_answer=answer, ground_truth=truth)) == pytest.approx(f1)


def test_token_f1_applies_to_answerable_queries_with_a_truth() -> None:
    measure = measure_named("token_f1")
    assert measure.applies(case_of(row(query_type="negative"))) == "no answer in the documents"
    assert measure.applies(case_of(row(query_type="negative", answerable=True))) == ""
    assert measure.applies(case_of(row(ground_truth=" "))) == "no ground truth"
    assert measure.applies(case_of(row())) == ""


def test_citation_recall_counts_needed_pages_once() -> None:
    context = chunks(("a.md", ""), ("b.md", ""), ("a.md", ""))
    cited = {"retrieved_chunks": context, "context_reference": ["a.md", "c.md"]}
    assert value("citation_recall", row(**cited, citations=[1, 3])) == 0.5
    assert value("citation_recall", row(**cited, citations=[2])) == 0.0
    assert value("citation_recall", row(**cited, citations=[0, 4, 9])) == 0.0
    assert value("citation_recall", row(retrieved_chunks=context, citations=[1])) is None


def test_evidence_recall_looks_in_the_prompt_with_white_space_folded() -> None:
    context = chunks(("a.md", "Returns are\n  free within 30 days."), ("b.md", "Ships"))
    found = row(retrieved_chunks=context)
    assert value("evidence_recall", found, "are free  within", "Ships", "ships", "free within 31") == 0.5
    assert value("evidence_recall", found, "days. Ships") == 0.0  # no single chunk says it
    assert value("evidence_recall", found) is None
    assert value("evidence_recall", found, " ") is None


def test_abstaining_is_right_or_wrong_by_query_type() -> None:
    negative, direct = row(abstained=True, query_type="negative"), row(abstained=True)
    rows = (negative, direct, row())
    assert [value("abstention_rate", each) for each in rows] == [1.0, 1.0, 0.0]
    assert [value("false_abstention_rate", each) for each in rows] == [None, 1.0, 0.0]


@pytest.mark.parametrize("name", ["abstention_rate", "false_abstention_rate"])
def test_whether_an_answer_abstains_is_told_by_phrases_of_its_own_language_alone(name: str) -> None:
    finnish = row(llm_answer="Se ei ole lähteissä, joten sitä ei voi sanoa, mutta voit kysyä sen myös kaupasta.")
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    score = measure.score(case_of(finnish), finnish)
    assert (score.value, score.reason, score.undefined) == (None, "not judged: language fi", False)
    german = row(llm_answer="Der Versand kostet 4,90 € und die Lieferung dauert drei Tage.")
    assert measure.score(case_of(german), german).value == 0
    told = finnish.model_copy(update={"stages": (RowStage(name="ask", ms=1.0, detail={"abstained": False}),)})
    assert measure.score(case_of(told), told).value == 0


def test_a_pipeline_that_states_no_confidence_has_none() -> None:
    measure = measure_named("confidence")
    assert isinstance(measure, RowMeasure)
    silent, sure = (measure.score(case_of(each), each) for each in (row(), row(confidence=0.25)))
    assert (silent.value, silent.reason, silent.undefined) == (None, "no confidence", True)
    assert (sure.value, sure.undefined) == (0.25, False)


def test_an_error_counts_1() -> None:
    failed = row(status="error", error={"stage": "generate", "type": "ModelCallError", "message": "503"})
    assert (value("error_rate", failed), value("error_rate", row())) == (1.0, 0.0)


def test_the_worst_value_is_1_where_lower_is_better() -> None:
    measures = [measure_named(name) for name in ANSWERS]
    assert {measure.name for measure in measures if measure.worst} == {"error_rate", "false_abstention_rate"}
    assert {measure.name for measure in measures if measure.better == "lower"} == {
        "error_rate",
        "false_abstention_rate",
    }


# Chunks of no known document, as services have them: gold's quotes say where they are from, where gold is known.

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


# Measures of long answers: what does not end in the time of an answer has a reason in place of a value.

# Measures of long answers: what does not end in the time of an answer has a reason in place of a value.

LONG_ANSWERS_CASE = Case(
    Query("q1", "How long?"),
    ground_truth="Within 45 days, for 9 euros.",
    qrels={"returns.md": 1},
    evidence=(Evidence("returns.md", "within 45 days"),),
    expect=(Expectation("contains", "45 days"),),
    metadata={"superseded": [{"outdated_statement": "within 30 days", "current_statement": "within 45 days"}]},
)
DEADLINE = 10.0


class OwnF1(TokenF1):
    """Where it was computed."""

    said: ClassVar[list[int]] = []

    def score(self, case: Case, row: ExperimentResult) -> Score:
        self.said.append(os.getpid())
        return Score(1.0)


def test_a_measure_that_outlasts_the_time_has_a_reason() -> None:
    row = make_row(llm_answer=LONG_ANSWERS["words"])
    with checks_within(0.001):
        late = scored(TokenF1(), LONG_ANSWERS_CASE, row)
        assert (late.value, late.reason) == (None, "not checked within 0.001 s. Allow more: --rag-deadline")
        assert scored(TokenF1(), LONG_ANSWERS_CASE, make_row(llm_answer="within 45 days")).value
        assert scored(OwnF1(), LONG_ANSWERS_CASE, row).value == 1, "a measure of a user's own is computed here"
    assert OwnF1.said == [os.getpid()]


def test_a_long_answer_is_scored_as_a_short_one() -> None:
    said = "within 45 days, for 9 euros. "
    short, long = (
        scored(TokenF1(), LONG_ANSWERS_CASE, make_row(llm_answer=said * number)).value for number in (600, 800)
    )
    assert short is not None
    assert long is not None
    assert 0 < long < short


@pytest.mark.long
def test_no_measure_outlasts_the_deadline_on_any_long_answer() -> None:
    found = [measure_named(f"{name}@5" if name in _with_cutoff() else name) for name in known_measures()]
    of_rows = [each for each in found if isinstance(each, RowMeasure) and not isinstance(each, RankingMeasure)]
    assert len(of_rows) > 15
    with checks_within(DEADLINE):
        scored(TokenF1(), LONG_ANSWERS_CASE, make_row(llm_answer="a" * 20_001))  # the process starts
        for name, text in LONG_ANSWERS.items():
            row = make_row(llm_answer=text)
            for measure in of_rows:
                began = time.monotonic()
                if not measure.applies(LONG_ANSWERS_CASE):
                    scored(measure, LONG_ANSWERS_CASE, row)
                assert time.monotonic() - began < DEADLINE + 1, (measure.name, name)


def _with_cutoff() -> set[str]:
    from rag_harness.core.registry import resolve

    return {name for name in known_measures() if getattr(resolve("measures", name), "takes_cutoff", False)}


# A measure of a user's own may return a number, or None for what it has no value for: that is counted, and named.


class Picky(RowMeasure):
    """1 for answers that it likes."""

    called = "picky"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        return None if "no" in row.llm_answer else 1  # type: ignore[return-value]


class Odd(Picky):
    """A text."""

    def score(self, case: Case, row: ExperimentResult) -> Score:
        return "good"  # type: ignore[return-value]


def test_what_has_no_value_is_named_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        value = "tests"

        def load(self) -> type[Picky]:
            return Picky

    known = registered("measures")
    monkeypatch.setitem(known, "picky", Point())
    rows = [make_row(query_id=f"q{n}", llm_answer="no" if n < 12 else "yes") for n in range(40)]
    found = table_of(rows, measures=["picky"])
    verdict = judge(parse_gate("e3: picky >= 0.9", 5), {"e3": found})
    assert (verdict.state, verdict.n, found.unmeasured("picky", {})) == ("passed", 28, 12)
    assert verdict.reason == "12 could not be measured: picky returned no value for 12 of 40"
    assert measure_named("picky").name == "picky"


def test_other_things_are_no_value_and_say_so() -> None:
    row = make_row()
    assert scored(Picky(), case_of(row), row) == Score(1.0)
    with pytest.raises(TypeError, match="picky returned str; a measure returns a Score, a number or None"):
        scored(Odd(), case_of(row), row)
