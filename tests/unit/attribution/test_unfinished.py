"""Does an answer stop before its end?"""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.attribution.unfinished import CutOff, Habits, cut_off, habits_of
from rag_harness.results.row import ExperimentResult
from tests.unit.rows import make_row

SOURCE = "You may return the tent within 33 days of delivery. Used tents cannot be returned."
NOBODY = Habits()


def said(answer: str, **changes: Any) -> ExperimentResult:
    return make_row(llm_answer=answer, **changes)


def called(reason: str) -> dict[str, Any]:
    return {
        "stages": [
            {"name": "generate", "ms": 1.0, "calls": [{"role": "answer", "model": "m", "finish_reason": reason}]}
        ]
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
    habits = Habits([f"The answer to it is {n}." for n in range(5)])
    found = cut_off(said("The answer to all of it stands"), [], habits)
    assert found == CutOff("5 of 5 answers end with a sentence, and this one in the middle of one")
    bare = Habits([f"the answer to it is {n}" for n in range(5)])
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
