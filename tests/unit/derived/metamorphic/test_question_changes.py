"""What is changed in a question, and what is left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_harness.diagnosis.perturbations import QUERY_CHANGES, enumerated_otherwise, in_capitals, politely, with_typos

WORDS = "how long may I return the lamp, tent, and or both Grove Plus between 5 10 45 days? June, July FU-8002"
QUESTIONS = st.text(st.sampled_from("abcDEF äß 0123456789.,?!-€’ \n"), max_size=60) | st.lists(
    st.sampled_from(WORDS.split(" ")), max_size=12
).map(" ".join)


def figures(text: str) -> list[str]:
    return sorted(re.findall(r"\d+", text))


@hypothesis_settings(deadline=None)
@given(QUESTIONS, st.integers(0, 9))
def test_no_figure_is_changed_and_a_seed_always_gives_the_same(question: str, seed: int) -> None:
    for change in QUERY_CHANGES.values():
        changed = change(question, seed)
        assert changed == change(question, seed)
        assert bool(changed.text) != bool(changed.why)
        if changed.text:
            assert changed.text != question
            assert figures(changed.text) == figures(question)


@hypothesis_settings(deadline=None)
@given(QUESTIONS)
def test_capitals_and_politeness_are_given_once(question: str) -> None:
    for change in (in_capitals, politely):
        once = change(question, 7).text
        assert not once or not change(once, 7).text


@pytest.mark.parametrize(
    ("question", "turned"),
    [
        ("Do you ship in June, July and September?", "Do you ship in September, July and June?"),
        ("date, store and price?", "price, store and date?"),
        ("filters, cleaning tablets, or descaler are due", "descaler, cleaning tablets, or filters are due"),
        ("What fits both lamps and tents?", "What fits both tents and lamps?"),
        ("the difference between Grove and Plus?", "the difference between Plus and Grove?"),
        ("Compare Standard and Express", "Compare Express and Standard"),
    ],
)
def test_a_list_is_reversed_and_twice_is_as_it_was(question: str, turned: str) -> None:
    assert enumerated_otherwise(question, 7).text == turned
    assert enumerated_otherwise(turned, 7).text == question


@pytest.mark.parametrize(
    "question",
    [
        "warranty",
        "",
        "between 5 and 10 days?",
        "I came late, paid the fee and left early",
        "A Marrow sofa, two lamps and a duvet",
        "I returned it and want my money",
        "Is it Harrow Field and West Pier?",
        "from June and June",
    ],
)
def test_what_may_be_no_list_is_left_alone(question: str) -> None:
    assert enumerated_otherwise(question, 7).why == "the question lists nothing"


def test_typos_swap_two_letters_inside_a_word() -> None:
    question = "please return the FU-8002 to Harrowfeld within fourteen days"
    changed = with_typos(question, 7).text
    ((before, after),) = [(a, b) for a, b in zip(question.split(), changed.split(), strict=True) if a != b]
    assert before in ("please", "return", "within", "fourteen")
    assert sorted(before) == sorted(after)
    assert (before[0], before[-1]) == (after[0], after[-1])
    many = with_typos(" ".join(["returns"] * 24), 7).text
    assert sum(word != "returns" for word in many.split()) == 3
    assert len({with_typos(question, seed).text for seed in range(20)}) > 1


@pytest.mark.parametrize("question", ["a lamp", "FU-8002", "", "Harrowfeld", "don't-touch", "aaaaa"])
def test_a_question_without_a_word_to_mistype(question: str) -> None:
    assert with_typos(question, 7).why == "no word of 5 letters that could be mistyped"


@pytest.mark.parametrize(
    ("question", "why"),
    [("12 €", "no letter of the question has a capital"), ("LAMP?", "the question is in capitals"), ("", "no letter")],
)
def test_a_question_that_capitals_do_not_change(question: str, why: str) -> None:
    assert in_capitals(question, 7).why.startswith(why)


def test_politeness_adds_words_and_an_end() -> None:
    assert "live fish. " in politely(" live fish ", 7).text
    assert "live fish? " in politely("live fish?", 7).text
    assert politely("  ", 7).why == "the question is empty"


def test_a_german_question_gets_no_english_words() -> None:
    asked = "Wie lange dauert der Versand und was kostet er?"
    assert politely(asked, 0) == ("", "no rules for de: the polite words are English")
    assert enumerated_otherwise(asked, 0) == ("", "no rules for de: lists are read in English")
    assert with_typos(asked, 0).text
