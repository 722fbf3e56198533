"""Does an answer stop before its end? Long answers take no rule too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.diagnosis.gold import GoldIndex, contradiction, gold_facts, may_contradict
from rag_harness.diagnosis.truncation import CutOff, EndingHabits, cut_off, habits_of
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.records.row import ExperimentResult
from tests.effort import check_growth
from tests.long_answers import LONG_ANSWERS, WORST
from tests.unit.rows import make_row

# Does an answer stop before its end?

SOURCE = "You may return the tent within 33 days of delivery. Used tents cannot be returned."
NOBODY = EndingHabits()


def said(answer: str, **changes: Any) -> ExperimentResult:
    return make_row(llm_answer=answer, **changes)


def called(reason: str, role: str = "answer") -> dict[str, Any]:
    return {
        "stages": [{"name": "generate", "ms": 1.0, "calls": [{"role": role, "model": "m", "finish_reason": reason}]}]
    }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("You may return it within", "it ends “…You may return it within”"),
        ("You may return it, but not,", "it ends"),
        ("You may return it…", "it ends"),
        ("You may return it (if unused", "does not close"),
        ("You may return the tent within 33 days of deliv", "the beginning of “delivery”"),
        ("Yes. You may return the tent within 33 days", "where the passage goes on “of delivery."),
        ("", "the answer is empty"),
    ],
)
def test_what_shows_that_an_answer_was_cut_off(answer: str, why: str) -> None:
    assert why in cut_off(said(answer), [SOURCE], NOBODY).why


@pytest.mark.parametrize(
    "answer",
    [
        "33 days",
        "Within 33 days of delivery",
        "You may return the tent within 33 days of delivery. [Source 1]",
        "You may return the tent within 33 days of delivery [Source 1]",
        "“You may not.”",
        "- tents\n- sofas",
        "Yes",
    ],
)
def test_a_whole_answer_needs_no_full_stop(answer: str) -> None:
    assert cut_off(said(answer), [SOURCE], NOBODY) == CutOff()


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "incomplete"])
def test_the_server_says_that_the_model_reached_its_limit(reason: str) -> None:
    found = cut_off(said("A whole sentence.", **called(reason)), [], NOBODY)
    assert found == CutOff(f"the model stopped at its limit (finish_reason {reason})", is_sure=True)


@pytest.mark.parametrize(("role", "is_told"), [("answer", True), ("service", True), ("judge", False)])
def test_only_who_answers_can_have_stopped_at_a_limit(role: str, is_told: bool) -> None:
    assert cut_off(said("A whole sentence.", **called("length", role)), [], NOBODY).is_sure is is_told


def test_a_model_that_stopped_by_itself_has_said_all() -> None:
    assert cut_off(said("A whole sentence.", **called("stop")), [], NOBODY) == CutOff()
    of_a_stage = {"stages": [{"name": "ask", "ms": 1.0, "calls": [], "detail": {"stop_reason": "max_tokens"}}]}
    assert cut_off(said("A whole sentence.", **of_a_stage), [], NOBODY).is_sure


def test_answers_that_all_stop_at_one_length_were_cut_there() -> None:
    long = [f"{n} things may be sent back if nobody has used them sofar yet and more"[:39] for n in range(4)]
    habits = habits_of([said(text) for text in [*long, "Yes, 3 days."]])
    found = cut_off(said(long[0]), [], habits)
    assert found == CutOff("4 of 5 answers stop after 39 characters, and none is longer", is_sure=True)
    longer = habits_of([said(text) for text in [*long, "This one is longer than all of the others, which it ends."]])
    assert not cut_off(said(long[0]), [], longer).is_sure


def test_answers_that_all_stop_after_as_many_words_were_cut_there() -> None:
    long = [" ".join(f"{'word' * (n + 1)} by{n} word we have it here now here".split()[:6]) for n in range(4)]
    found = cut_off(said(long[0]), [], habits_of([said(text) for text in long]))
    assert found.why == "4 of 4 answers stop after 6 words, and none is longer"


def test_an_answer_that_ends_unlike_the_others_may_have_been_cut_off() -> None:
    habits = EndingHabits([f"The answer to it is {n}." for n in range(5)])
    found = cut_off(said("The answer to all of it stands"), [], habits)
    assert found == CutOff("5 of 5 answers end with a sentence, and this one in the middle of one")
    bare = EndingHabits([f"the answer to it is {n}" for n in range(5)])
    assert cut_off(said("the answer to all of it stands"), [], bare) == CutOff()
    assert cut_off(said("Colour: red; Size: 3"), [], habits) == CutOff()


@pytest.mark.parametrize(
    ("text", "source", "whole"),
    [
        ("It costs €3", "A crossing is €39 a day.", "39"),
        ("The card is valid for 1", "It is valid for 14 months.", "14"),
        ("It costs €3", "Either €3 or €39.", ""),
        ("It costs €3", "It has 39 seats.", ""),
        ("It costs €39", "A crossing is €39 a day.", ""),
        ("It costs €3.", "A crossing is €39 a day.", ""),
    ],
)
def test_a_figure_may_be_cut_in_its_middle(text: str, source: str, whole: str) -> None:
    found = cut_off(said(text), [source], NOBODY)
    assert found == (CutOff(f"it ends “…{text}”, the beginning of “{whole}”", is_sure=True) if whole else CutOff())


@pytest.mark.parametrize(
    ("text", "source", "rest"),
    [
        ("Every tent can be sent", "Every tent can be sent back.", "back."),
        ("Shops open: every tent can be sent", "Every tent can be sent back.", "back."),
        ("- every tent can be sent", "Every tent can be sent back.", "back."),
        ("It is so. Every tent can be sent", "First. Every tent can be sent, if new, back.", ", if new, back."),
        ("Every tent can be sent", f"Every tent can be sent {'on and ' * 9}on.", "on and on and on and on and on"),
        ("Refundable deliveries", "Refundable deliveries are free.", ""),  # a phrase
        ("Refundable tent deliveries", "Refundable tent deliveries are free.", ""),
        ("All refundable tent deliveries", "All refundable tent deliveries are free.", "are free."),
        ("A tent is big", "A tent is big and heavy.", ""),  # too short to be of one source
        ("A tent is bulk", "A tent is bulk and heavy.", ""),
        ("A tent is heavy", "A tent is heavy and big.", "and big."),
        ("Every tent can be sent", "Every tent can be sent.", ""),
        ("Every tent can be sent", "Nearly every tent can be sent back.", ""),  # not where a sentence begins
        ("Every tent can be sent", "Every tent can be sent back. Every tent can be sent.", ""),
    ],
)
def test_a_sentence_may_be_the_beginning_of_one_of_a_source(text: str, source: str, rest: str) -> None:
    found = cut_off(said(text), [source], NOBODY)
    why = f"it ends “…{text[-30:]}”, where the passage goes on “{rest.strip()}”"
    assert found == (CutOff(why, is_sure=True) if rest else CutOff())


@pytest.mark.parametrize(
    ("text", "source", "whole"),
    [
        ("Sent by deliv", "Sent by delivery.", "delivery"),
        ("Deliv", "Delivery is free.", "delivery"),
        ("Sent by deliv", "It is by delivery.", "delivery"),
        ("Sent by deliv", "We like delivery.", ""),  # behind another word
        ("Sent by tent", "Sent by tents.", ""),
        ("Sent by deliv", "Sent by delivery. A deliv is known.", ""),
    ],
)
def test_a_word_may_be_cut_in_its_middle(text: str, source: str, whole: str) -> None:
    found = cut_off(said(text), [source], NOBODY)
    assert found == (CutOff(f"it ends “…{text}”, the beginning of “{whole}”", is_sure=True) if whole else CutOff())


@pytest.mark.parametrize(
    ("alike", "others", "is_sure"), [(2, 0, False), (3, 0, True), (3, 27, True), (3, 28, False), (4, 28, True)]
)
def test_a_few_that_stop_at_one_length_are_chance(alike: int, others: int, is_sure: bool) -> None:
    """Three at least, and one in ten."""
    words = [f"a{n} tent may come back to the shop" for n in range(alike)]
    habits = EndingHabits([*words, *(f"It is {n}." for n in range(others))])
    assert cut_off(said(words[0]), [], habits).is_sure is is_sure


def test_a_blank_at_the_end_of_a_cut_may_have_been_taken_off() -> None:
    texts = ["a tent may come back to shops", "a1 tent may come back to shop", "a2 tent may come back to shops"]
    assert [len(text) for text in texts] == [29, 29, 30]
    assert EndingHabits(texts).stopping(texts[0]) == (3, "29 characters")
    assert EndingHabits([*texts, "a33 tent may come back to shops"]).stopping(texts[0]) == (4, "7 words")
    assert EndingHabits([*texts, "a4 tent may come back to a shop or two"]).stopping(texts[0]) == (0, "")


@pytest.mark.parametrize(("whole", "unfinished", "is_told"), [(3, 0, False), (4, 0, True), (3, 3, True), (3, 4, False)])
def test_half_of_four_answers_or_more_are_a_habit(whole: int, unfinished: int, is_told: bool) -> None:
    long = "and the answer is longer than what is told by any of the others"
    texts = [f"The answer to all the questions is here and is {n:0>4}." for n in range(whole)]
    texts += [f"{long}, which stand {n}" for n in range(unfinished)]
    why = f"{whole} of {whole + unfinished} answers end with a sentence, and this one in the middle of one"
    assert cut_off(said("the answer to all of them stands there"), [], EndingHabits(texts)) == CutOff(
        why if is_told else ""
    )


@pytest.mark.parametrize(("whole", "unfinished", "is_told"), [(2, 0, False), (3, 0, True), (3, 3, True), (3, 4, False)])
def test_of_shorter_answers_three_are_enough(whole: int, unfinished: int, is_told: bool) -> None:
    texts = [f"The answer is {n}." for n in range(whole)] + [f"the answer is {n}" for n in range(unfinished)]
    texts += [f"{n} is what stands in an answer that is longer than the one that is asked about" for n in range(9)]
    why = f"{whole} of {whole + unfinished} shorter answers end with a sentence, and this one in the middle of one"
    assert cut_off(said("the answer stands here or there"), [], EndingHabits(texts)) == CutOff(why if is_told else "")


@pytest.mark.parametrize(
    "text", ["“It is told", "It is (told", "**It is told", "```It is told", 'It is "told', "«It is told"]
)
def test_what_is_opened_and_not_closed(text: str) -> None:
    assert cut_off(said(text), [], NOBODY) == CutOff(f"it ends “…{text}”: what it opens it does not close")
    closed = '“It is told” (it is), **it is**, ```it is```, "it is", «it is», and so it is told'
    assert cut_off(said(closed), [], NOBODY) == CutOff()


# Long answers: every rule of the diagnosis that looks at one. They run where the run ends, and nobody ends them.

DAYS = "You may return the tent within 33 days, not 34 or 35. Or 12, or €9.90, or 5."
CASE = Case(
    Query("q1", "How long?"),
    ground_truth="Zebras sleep 44 days under umbrellas, for €9.",
    qrels={"returns.md": 1},
    evidence=(Evidence("returns.md", DAYS),),
)
OTHER = Case(Query("q2", "Where?"), ground_truth="In the shop, within 45 days.", qrels={"shops.md": 1})
RULES: dict[str, Callable[[str], object]] = {
    "right": lambda text: rightness(CASE, text, False),
    "declines": declines,
    "may contradict": lambda text: may_contradict("How long?", CASE.ground_truth, text),
    "contradiction": lambda text: contradiction(CASE, text, [DAYS]),
    "gold": lambda text: gold_facts(CASE, make_row(llm_answer=text), None),
    "another's gold": lambda text: GoldIndex([CASE, OTHER]).other(CASE, text, rightness(CASE, text, False)),
    "cut off": lambda text: cut_off(make_row(llm_answer=text), [CASE.ground_truth, DAYS], EndingHabits()),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", WORST)
def test_a_rule_takes_time_as_the_answer_is_long(rule: str, name: str) -> None:
    check_growth(RULES[rule], LONG_ANSWERS[name][:50_000])


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_a_rule_takes_time_as_the_longest_answer_is_long(rule: str, name: str) -> None:
    check_growth(RULES[rule], LONG_ANSWERS[name])
