"""Retention, correction, asking back, and MTRAG's gate: what a judge is asked, and what its verdicts come to."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Message, Query
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.fused import FusedJudge
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures import Score, measure_named, parts_of
from rag_harness.evaluation.measures.opinion import (
    Judge,
    Material,
    Relevancy,
    also_asking_of_turns,
    kinds_named,
    turn_material,
)
from tests.unit.evaluation.judges.scripted import Chat, Parts, as_parts, run_judge
from tests.unit.evaluation.measures.judged.opinions import FULL, Told, judged_measure, score

SAID = (
    Message("user", "I want to rent a tent for three days."),
    Message("assistant", "A tent costs 14 euros for the first day."),
)
TRUTH = "No. The tent has to be back by noon."
NAMES = ("retention", "correction", "asks_back")


def material(answer: str, kind: str = "", truth: str = TRUTH, **more: Any) -> Material:
    plain = Material("And what if I am late?", answer, ("The tent has to be back by noon.",), truth, **more)
    found = turn_material(plain, SAID, kinds_named(kind))
    return also_asking_of_turns(found, parts_of([*NAMES, "faithfulness_mtrag"]))


def llm(chat: Chat) -> Judge:
    parts = Parts(chat)
    return run_judge(FusedJudge(as_parts(parts)), parts)


def words() -> Judge:
    """A judge without a chat model: rules answer what is asked of turns."""
    return run_judge(MockJudge(), Parts(settings=Settings(judge="mock")))


def scores(judge: Judge, given: Material, *names: str) -> dict[str, Score]:
    return asyncio.run(judged(given, parts_of(names), judge))


def verdicts(*said: str, quote: str = "") -> dict[str, Any]:
    return {"verdicts": [{"index": n, "quote": quote, "verdict": each} for n, each in enumerate(said, 1)]}


def test_all_criteria_of_a_turn_are_one_call_in_the_conversation() -> None:
    chat = Chat()
    scores(llm(chat), material("Bring it back by noon.", "correction"), *NAMES)
    (asked,) = chat.asked
    assert asked.kind == "met"
    criteria = asked.numbered("criterion")
    assert len(criteria) == 3
    (corrects,) = [each for each in criteria if each.endswith(TRUTH)]
    assert corrects.startswith("makes the user see")
    assert "A tent costs 14 euros" in asked.sections["question"]


@pytest.mark.parametrize(
    ("said", "value", "reason"),
    [
        (("met", "met"), 1.0, ""),
        (("met", "not met"), 0.0, "not: "),
        (("cannot tell", "met"), None, "the judge cannot tell"),
        # One that is broken decides, whatever is not known of the other.
        (("cannot tell", "not met"), 0.0, "not: "),
    ],
)
def test_retention_is_both_of_its_criteria(said: tuple[str, ...], value: float | None, reason: str) -> None:
    found = scores(llm(Chat(met=[verdicts(*said)])), material("By noon."), "retention")["retention"]
    assert found.value == value
    assert not found.undefined
    assert found.reason.startswith(reason)
    assert len(found.detail["expectations"]) == 2


def test_a_verdict_has_its_words_and_their_place() -> None:
    answer = "For how many days? By noon."
    found = scores(
        llm(Chat(met=[verdicts("not met", "met", quote="For how many days?")])), material(answer), "retention"
    )
    kept = {each["kept"]: each for each in found["retention"].detail["expectations"]}
    assert (kept[False]["said"], kept[False]["start"], kept[False]["end"]) == ("“For how many days?”", 0, 18)


@pytest.mark.parametrize(
    ("name", "query", "why"),
    [
        ("retention", Query("q", "?"), "nothing said before"),
        ("retention", Query("q", "?", {"conversation": "c", "turn": 1}), "nothing said before"),
        ("correction", Query("q", "?"), "no wrong premise"),
        ("asks_back", Query("q", "?"), "a question that says what it is about"),
    ],
)
def test_measures_apply_to_their_turns_only(name: str, query: Query, why: str) -> None:
    assert measure_named(name).applies(Case(query)).startswith(why)


def test_a_turn_says_by_its_kind_or_its_query_type_what_it_is() -> None:
    by_kind = Case(Query("q", "?"), metadata={"turn_kind": "correction"}, ground_truth="No.")
    assert not measure_named("correction").applies(by_kind)
    assert measure_named("correction").applies(replace(by_kind, ground_truth="")) == "no ground truth"
    assert not measure_named("asks_back").applies(Case(Query("q", "?"), query_type="underspecified"))
    told = Query("q", "?", {"conversation": "c", "turn": 2, "history": [{"role": "user", "content": "Hi"}]})
    assert not measure_named("retention").applies(Case(told))


def test_an_abstention_keeps_everything_in_mind_and_says_nothing_of_it() -> None:
    silent = scores(llm(Chat()), material("I don't know.", abstained=True), "retention")["retention"]
    assert silent.undefined
    asking = material("I don't know. For how many days?", abstained=True)
    assert not scores(llm(Chat(met=[verdicts("not met", "met")])), asking, "retention")["retention"].undefined
    correction = scores(llm(Chat()), material("I don't know.", "correction", abstained=True), "correction")[
        "correction"
    ]
    assert correction.value == 0.0


@pytest.mark.parametrize(
    ("answer", "kind", "answerable", "abstained", "value"),
    [
        ("I don't know.", "", False, True, 1.0),
        ("By noon.", "", False, False, 0.0),
        ("I don't know.", "", True, True, 0.0),
        ("The tent has to be back by noon.", "", True, False, 1.0),
        ("Owls sleep when it is late.", "", True, False, 0.0),
        ("Which tent do you mean?", "underspecified", True, False, 1.0),
        ("I don't know.", "underspecified", True, True, 0.0),
        # As MTRAG-UN has it, an answer for each case does not count.
        ("The tent has to be back by noon.", "underspecified", True, False, 0.0),
    ],
)
def test_the_gate_of_mtrag(answer: str, kind: str, answerable: bool, abstained: bool, value: float) -> None:
    given = material(answer, kind, answerable=answerable, abstained=abstained)
    assert scores(words(), given, "faithfulness_mtrag")["faithfulness_mtrag"].value == value


@pytest.mark.parametrize(
    ("answer", "value", "reason"),
    [
        ("Then it rains.", 1.0, ""),
        ("A tent costs 19 euros for the first day.", 0.0, "14 euros"),
        ("Sorry, that was wrong: a tent costs 19 euros for the first day.", None, "it may put right"),
        ("For how many days?", None, "it asks back"),
        ("Can I help you with anything else?", 1.0, ""),
        ("A tent costs 14 euros for the first day.", 1.0, ""),
        ("The tent costs more for each day that it is late.", None, "words do not tell"),
    ],
)
def test_retention_by_rules_says_where_it_cannot_tell(answer: str, value: float | None, reason: str) -> None:
    found = scores(words(), material(answer), "retention")["retention"]
    assert found.value == value, found.reason
    assert reason in found.reason


@pytest.mark.parametrize(
    ("answer", "value"),
    [("It has to be back by noon, I am afraid: the tent.", 1.0), ("Yes, that is right.", 0.0)],
)
def test_correction_by_rules_is_whether_the_answer_states_what_is_right(answer: str, value: float) -> None:
    found = scores(words(), material(answer, "correction"), "correction")["correction"]
    assert found.value == value
    assert "what is right: “No. The tent has to be back by noon.”" in str(found.detail)


CASES = "Ask which: the Ridge 2 costs 14 euros, the Ridge 3 costs 18 euros."


@pytest.mark.parametrize(
    ("answer", "truth", "value"),
    [
        ("Which Ridge do you mean?", CASES, 1.0),
        ("Please tell me which Ridge it is.", CASES, 1.0),
        ("Who are you?", CASES, None),
        ("The Ridge 2 costs 14 euros and the Ridge 3 costs 18 euros.", CASES, 1.0),
        ("The Ridge 3 costs 18 euros.", CASES, 0.0),
        ("That depends.", "Ask which tent it is.", None),
    ],
)
def test_asking_back_by_rules(answer: str, truth: str, value: float | None) -> None:
    found = scores(words(), material(answer, "underspecified", truth), "asks_back")["asks_back"]
    assert found.value == value, found.reason
    assert found.value is not None or found.reason


def test_a_language_without_rules_is_not_judged_by_rules() -> None:
    german = "Das Zelt muss bis zum Mittag wieder da sein, und wenn es später wird, dann kostet das noch etwas mehr."
    found = scores(words(), material(german), "retention")["retention"]
    assert (found.value, found.reason) == (None, "not judged: language de")


# Answer relevancy: the raw cosine, and what has none.


@pytest.mark.parametrize("cosine", [1.0, 0.25, 0.0, -0.5, -1.0])
def test_the_raw_cosine_is_kept(cosine: float) -> None:
    said = score("answer_relevancy", Told(relevant=Relevancy(cosine, detail={"questions": ["why?"]})))
    assert said.value == cosine
    assert said.detail == {"noncommittal": False, "questions": ["why?"]}


def test_rounding_does_not_leave_the_range() -> None:
    assert score("answer_relevancy", Told(relevant=Relevancy(1.0000001))).value == 1.0
    assert score("answer_relevancy", Told(relevant=Relevancy(-1.0000001))).value == -1.0


@pytest.mark.parametrize("cosine", [0.9, None])
def test_a_noncommittal_answer_is_0(cosine: float | None) -> None:
    said = score("answer_relevancy", Told(relevant=Relevancy(cosine, noncommittal=True)))
    assert (said.value, said.detail["noncommittal"]) == (0.0, True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Relevancy(math.nan), "cosine nan is not in [-1, 1]"),
        (Relevancy(math.inf), "cosine inf is not in [-1, 1]"),
        (Relevancy(1.5), "cosine 1.5 is not in [-1, 1]"),
        (Relevancy(None, reason="no question came back"), "no question came back"),
        (Relevancy(None), "the judge gave no cosine"),
    ],
)
def test_what_is_no_cosine_is_no_score(said: Relevancy, reason: str) -> None:
    found = score("answer_relevancy", Told(relevant=said))
    assert (found.value, found.reason) == (None, reason)


def test_an_abstention_is_0_without_asking_where_there_was_an_answer() -> None:
    assert score("answer_relevancy", Told(), replace(FULL, abstained=True)).value == 0.0
    assert score("answer_relevancy", Told(), replace(FULL, answer=" \n")).value == 0.0


def test_a_right_abstention_has_no_relevancy() -> None:
    unanswerable = replace(FULL, answerable=False)
    assert judged_measure("answer_relevancy").undefined(replace(unanswerable, abstained=True)) == "a right abstention"
    assert score("answer_relevancy", Told(relevant=Relevancy(0.7)), unanswerable).value == 0.7
