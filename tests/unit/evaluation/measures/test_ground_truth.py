"""Is an answer right? By the figures and words that it carries."""

from __future__ import annotations

import pytest

from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures.correctness import needed_quotes, rightness

TRUTH = "The fee is €9.90 and is refunded within 45 days."


def asked(truth: str = TRUTH, *quotes: str, answerable: bool = True) -> Case:
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
    assert not rightness(asked(), f"I don't know. {TRUTH}", True).right
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
        (TRUTH, "The fee of 9.90 is refunded.", False, False),
        ("1, 2 or 3 green, wooden boxes", "Green, wooden boxes: 1, 2 and 3.", True, True),
        ("1, 2 or 3 green, wooden boxes", "Green, wooden boxes: 1 and 2.", True, False),
    ],
)
def test_what_lacks_a_part_is_wrong_in_a_list_and_else_not_checked(
    truth: str, answer: str, checked: bool, right: bool
) -> None:
    found = rightness(asked(truth), answer, False)
    assert (found.value is not None, found.right) == (checked, right)
