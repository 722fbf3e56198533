"""Is an answer right? By the truth, by what is kept of a goal, by quotes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Case, Chunk, Evidence, Expectation, Query, Scenario
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.gold import gold_facts
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.answers import EvidenceRecall, as_shown
from rag_harness.evaluation.measures.correctness import (
    Correct,
    Correctness,
    by_judge,
    correctness,
    describe_disagreement,
    needed_quotes,
    rightness,
)
from rag_harness.evaluation.measures.expectations import GoalReached
from rag_harness.records.expectations import expectations_of
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.judging import RowJudge
from tests.unit.rows import make_chunk, make_row

# Is an answer right, and what decided that?

TRUTH = "The fee is €9.90."
RIGHT, WRONG, DECLINES = "It is 9.90 euros.", "It is 12 euros.", "I don't know."


def case(truth: str = TRUTH, answerable: bool = True, expect: list[dict[str, Any]] | None = None) -> Case:
    expected, problems = expectations_of(expect or [])
    assert not problems
    return Case(Query("q", "What is the fee?"), ground_truth=truth, answerable=answerable, expect=expected)


def answered(text: str, of: Case | None = None, **more: Any) -> ExperimentResult:
    of = of or case()
    told = {"llm_answer": text, "ground_truth": of.ground_truth, "answerable": of.answerable, "query": of.query.text}
    return make_row(query_id="q", **{**told, "abstained": text == DECLINES, **more})


@pytest.mark.parametrize(
    ("asked", "answer", "found"),
    [
        (case(), RIGHT, Correctness(True, "ground_truth")),
        (case(), WRONG, Correctness(False, "ground_truth")),
        (case(), DECLINES, Correctness(False, "declined")),
        (case("", answerable=False), DECLINES, Correctness(True, "declined")),
        (case("", answerable=False), RIGHT, Correctness(False, "declined")),
        (case(""), RIGHT, Correctness()),
        (case(), "", Correctness()),
        (case(expect=[{"contains": "9.90"}]), RIGHT, Correctness(True, "expectations")),
        (case(expect=[{"contains": "12"}]), RIGHT, Correctness(False, "expectations")),
        (case(expect=[{"declines": True}]), DECLINES, Correctness(True, "expectations")),
    ],
)
def test_the_first_that_can_tell_decides(asked: Case, answer: str, found: Correctness) -> None:
    assert correctness(asked, answered(answer, asked)) == found


def test_a_trial_without_an_answer_is_not_checked() -> None:
    assert correctness(case(), answered("", status="error")) == Correctness()


@pytest.mark.parametrize("demand", [{"max_ms": 1e9}, {"max_words": 50}, {"answers": True}])
def test_form_time_and_cost_do_not_make_an_answer_right(demand: dict[str, Any]) -> None:
    asked = case(expect=[demand])
    assert correctness(asked, answered(WRONG, asked)) == Correctness(False, "ground_truth")
    alone = case("", expect=[demand])
    assert correctness(alone, answered(WRONG, alone)) == Correctness(True, "expectations")


def test_what_a_model_is_to_judge_waits_for_it_unless_something_is_broken_already() -> None:
    asked = case(expect=[{"rubric": "is polite"}])
    assert correctness(asked, answered(RIGHT, asked)) == Correctness()
    both = case(expect=[{"rubric": "is polite"}, {"contains": "12"}])
    assert correctness(both, answered(RIGHT, both)) == Correctness(False, "expectations")


def test_the_measure_takes_what_the_row_says_unless_its_gold_is_another() -> None:
    measure = Correct()
    said = answered(RIGHT, correct=False, correct_by="ground_truth")
    assert measure.score(case(), said).value == 0
    assert measure.score(case("It's 9.90 euros."), said).value == 1
    assert measure.score(case(expect=[{"contains": "9.90"}]), said).value == 1
    assert measure.score(case(""), answered(RIGHT, case(""))).reason == "not checked"


@pytest.mark.parametrize(
    ("measure", "value", "right"),
    [
        ("expectations", 1.0, True),
        ("expectations", 0.9, False),
        ("factuality", 0.5, True),
        ("factuality", 0.4, False),
        ("answer_correctness", 0.5, True),
    ],
)
def test_all_expectations_are_to_be_kept_and_of_another_judged_measure_half_is_enough(
    measure: str, value: float, right: bool
) -> None:
    assert by_judge(measure, value) == right


@pytest.mark.parametrize(
    ("asked", "answer", "said"),
    [
        (case(expect=[{"contains": "12"}]), WRONG, "its expectations pass and its ground truth is not in the answer"),
        (
            case(expect=[{"contains": "12"}]),
            RIGHT,
            "its ground truth is in the answer and its expectations do not pass",
        ),
        (case(expect=[{"contains": "9.90"}]), RIGHT, ""),
        (case(expect=[{"contains": "know"}]), DECLINES, ""),
        (case("", expect=[{"contains": "12"}]), WRONG, ""),
        (case(), WRONG, ""),
    ],
)
def test_expectations_and_ground_truth_that_contradict_each_other_are_named(
    asked: Case, answer: str, said: str
) -> None:
    assert describe_disagreement(asked, answered(answer, asked)) == said


# Is an answer right? By the figures and words that it carries.

GROUND_TRUTH = "The fee is €9.90 and is refunded within 45 days."


def asked(truth: str = GROUND_TRUTH, *quotes: str, answerable: bool = True) -> Case:
    evidence = tuple(Evidence("fees.md", quote) for quote in quotes)
    return Case(Query("q", "What of the fee?"), ground_truth=truth, evidence=evidence, answerable=answerable)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("A fee of €9.9 is charged; refunds come within 45 days [Source 1].", True),
        ("A fee of €9.90 is charged; refunds come within 30 days.", False),
        ("The fee is refunded within some time.", False),
        ("9.90 45", False),
        ("", False),
    ],
)
def test_figures_and_words_are_both_needed(answer: str, right: bool) -> None:
    assert rightness(asked(), answer, False).right is right


def test_a_source_that_is_cited_is_no_figure() -> None:
    case = asked("It takes 3 days.")
    assert not rightness(case, "It takes days [Source 3].", False).right
    assert rightness(case, "It takes three days.", False).right
    assert written_numbers("[Sources 1, 3: a.md] nine of 30.0 and 1,500") == {"9", "30", "1500"}


def test_the_words_of_a_vital_quote_are_as_good_as_those_of_the_ground_truth() -> None:
    case = asked("Yes, 45.", "Money comes back | 45 days", "Open on Sundays")
    assert needed_quotes(case) == ["Money comes back | 45 days"]
    assert rightness(case, "Money comes back after 45 days.", False).right
    assert needed_quotes(asked("Yes.", "Some premise")) == ["Some premise"]


def test_refusing_is_wrong_where_there_is_an_answer_and_right_where_there_is_none() -> None:
    assert not rightness(asked(), f"I don't know. {GROUND_TRUTH}", True).right
    nothing = asked("", answerable=False)
    assert rightness(nothing, "I don't know.", True).right
    assert not rightness(nothing, "Surely.", False).right


def test_without_gold_nothing_can_be_said() -> None:
    assert rightness(asked(""), "Anything.", False).value is None


def test_an_answer_in_another_language_is_not_compared_by_english_stems() -> None:
    german = "Die Rückerstattung dauert drei Tage und wird auf die Karte gebucht, mit der Sie bezahlt haben."
    assert rightness(asked(), german, False).value is None
    finnish = "Palautus kestää kolme päivää, ja raha maksetaan takaisin sille kortille, jolla maksoit ostoksesi."
    assert rightness(asked(answerable=False), finnish, False).value is None
    assert rightness(asked(answerable=False), german, False).value == 0


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("This can't be answered from the information provided.", True),
        ("I'm sorry, but the documents do not mention the fee. I cannot help with that.", True),
        ("There is not enough information in the context.", True),
        ("Unfortunately I am unable to find that.", True),
        ("Delivery is not included.", False),
        ("The fee cannot be refunded.", False),
        ("The pages say that the fee is not refunded.", False),
        ("The documents do not mention the fee. The price is €9.", False),
        ("", False),
    ],
)
def test_a_refusal_in_other_words(answer: str, refused: bool) -> None:
    assert rightness(asked(answerable=False), answer, False).right is refused


@pytest.mark.parametrize(
    ("truth", "answer", "checked", "right"),
    [
        (GROUND_TRUTH, "The fee of 9.90 is refunded.", False, False),
        ("1, 2 or 3 green, wooden boxes", "Green, wooden boxes: 1, 2 and 3.", True, True),
        ("1, 2 or 3 green, wooden boxes", "Green, wooden boxes: 1 and 2.", True, False),
    ],
)
def test_what_lacks_a_part_is_wrong_in_a_list_and_else_not_checked(
    truth: str, answer: str, checked: bool, right: bool
) -> None:
    found = rightness(asked(truth), answer, False)
    assert (found.value is not None, found.right) == (checked, right)


# Whether a goal was reached by a turn: by what its answer keeps, and by what earlier answers have kept.

GOAL = Case(
    Query("s#2", "?"), scenario=Scenario("hi", reached=(Expectation("contains", "a"), Expectation("contains", "b")))
)


def reached(answer: str, *kept: int) -> tuple[float | None, str]:
    user = {"name": "user", "ms": 0, "detail": {"by": "x", "kept": list(kept)}}
    score = GoalReached().score(GOAL, make_row(llm_answer=answer, user=user))
    return score.value, score.reason


def test_each_of_it_is_kept_by_some_answer() -> None:
    assert reached("a and b") == (1.0, "")
    assert reached("b", 0) == (1.0, "")
    assert reached("b", 0, 1) == (1.0, "")
    assert reached("b") == (0.0, "no answer has kept contains “a”")
    assert reached("") == (0.0, "no answer has kept contains “a”; contains “b”")


def test_it_applies_where_a_scenario_says_when_its_goal_is_reached() -> None:
    assert GoalReached().applies(GOAL) == ""
    assert GoalReached().applies(Case(Query("q", "?"))) == "no simulated user asks it"
    assert (
        GoalReached().applies(Case(Query("s#1", "?"), scenario=Scenario("hi"))).startswith("its scenario does not say")
    )


def test_a_row_without_a_user_has_its_own_answer_alone() -> None:
    assert GoalReached().score(GOAL, make_row(llm_answer="a b")).value == 1.0


# Quotes lose their marks for rows whose chunks have lost theirs, and for no other row.

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
