"""Short answers are judged as the sentence that question and answer make, or not at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_harness.evaluation.judges.embedded.alignment import split_text
from rag_harness.evaluation.judges.embedded.short_answers import decide, is_short
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import AnswerRelevancy, Faithfulness
from rag_harness.evaluation.measures.opinion import NO_SUMMARY, REPEATS, TOO_SHORT, Material
from tests.unit.evaluation.judges.embedded.test_judge import Parts, judge_of

SHOP = (
    "Refunds take five days. Gift cards cannot be returned. Returns are accepted within 30 days of delivery.",
    "Standard shipping costs $5.99. Express shipping costs $14.99. Orders over $50 ship free.",
    "| Plan | Price | Users |\n|---|---|---|\n| Team | $12 | 10 |\n| Business | $30 | 50 |",
    "The contract was signed on 31 March 2025 and runs until 31 December 2027. The tour starts at the old mill and "
    "ends at the lighthouse. Run `acme sync --force` to overwrite. The pool was opened in 1931 and rebuilt in 1987.",
    "The bakery uses spelt, rye and oat flour. Wheat is used on Sundays only.",
)
SUPPORTS: dict[float | None, str] = {0.95: "right", 0.05: "wrong", None: "undecided"}


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        ("Can gift cards be returned?", "No.", "right"),
        ("Can gift cards be returned?", "Yes.", "wrong"),
        ("Are returns accepted?", "Yes", "right"),
        ("Are returns accepted or rejected?", "Rejected", "wrong"),
        ("Are returns accepted after 45 days of delivery?", "Yes.", "wrong"),
        ("Are returns accepted after 20 days of delivery?", "Yes.", "right"),
        ("Do orders over $50 ship free?", "No, they don't.", "wrong"),
        ("What does express shipping cost?", "$14.99", "right"),
        ("What does express shipping cost?", "$5.99", "wrong"),
        ("What does express shipping cost?", "$17.99", "wrong"),
        ("How long does a refund take?", "Five days", "right"),
        ("Which plan has 50 users?", "Business", "right"),
        ("Which plan has 50 users?", "Team", "wrong"),
        ("When was the contract signed?", "31 March 2025", "right"),
        ("When was the contract signed?", "31 December 2027", "wrong"),
        ("When was the pool rebuilt?", "1931", "wrong"),
        ("When was the pool rebuilt?", "1987", "right"),
        ("Where does the tour begin?", "At the lighthouse", "wrong"),
        ("Which option overwrites?", "--force", "right"),
        ("Which option overwrites?", "--forse", "wrong"),
        ("Which flours does the bakery use?", "Spelt, rye and oat", "right"),
        ("Which flours does the bakery use?", "Spelt, rye and barley", "wrong"),
        ("Who founded the shop?", "A baker's widow", "undecided"),
        ("Is the shop open at night?", "Yes", "undecided"),
    ],
)
def test_what_the_rules_say(question: str, answer: str, verdict: str) -> None:
    assert SUPPORTS[decide(question, answer, SHOP).value] == verdict


def test_a_wrong_one_has_a_reason_that_the_passages_bear_out() -> None:
    found = decide("What does express shipping cost?", "$5.99", SHOP)
    assert (found.reason, found.passage) == ("$5.99: the passage says $14.99", 1)
    assert decide("What does express shipping cost?", "$17.99", SHOP).reason == "$17.99: no passage says it"
    found = decide("Can gift cards be returned?", "Yes", SHOP)
    assert found.reason == "the passage says: Gift cards cannot be returned."


@pytest.mark.parametrize(
    ("answer", "short"),
    [
        ("Yes.", True),
        ("24 months", True),
        ("At the edge of the street", True),
        ("It costs $5.99.", True),
        ("Refunds take 5 days.", False),
        ("Our drones deliver Bitcoin from Zurich at midnight.", False),
        ("Yes. The refund takes five days.", False),
        ("", False),
        ("😀", False),
    ],
)
def test_what_is_short(answer: str, short: bool) -> None:
    assert is_short(answer, len(split_text(answer).sentences)) == short


def score(folder: Path, question: str, answer: str, measure: Literal["f", "r"] = "f", contexts: Any = SHOP) -> Score:
    asked = Faithfulness() if measure == "f" else AnswerRelevancy()
    material = Material(question, answer, contexts)
    return asyncio.run(judged(material, [asked], judge_of(Parts(folder))))[asked.name]


def test_score_and_hallucinated_are_one_number_and_no_model_is_asked(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    material = Material("Can gift cards be returned?", "No.", SHOP)
    right = asyncio.run(judged(material, [Faithfulness()], judge_of(parts)))["faithfulness"]
    wrong = asyncio.run(judged(replace(material, answer="Yes."), [Faithfulness()], judge_of(parts)))["faithfulness"]
    assert right.value is not None
    assert wrong.value is not None
    assert wrong.value < 0.4
    assert right.value > 0.7
    assert (right.detail["hallucinated"], wrong.detail["hallucinated"]) == (False, True)
    assert parts.inner.asked == []


def test_what_is_not_judged_says_why(tmp_path: Path) -> None:
    assert score(tmp_path, "Who founded the shop?", "A widow").reason.endswith(TOO_SHORT)
    assert score(tmp_path, "How long is it?", "How long is it?").reason.endswith(REPEATS)
    assert score(tmp_path, "How long is it?", "how long is it", "r").value == 0
    assert score(tmp_path, "Summarise the page.", "Refunds take five days. Gift cards stay.").reason == NO_SUMMARY
    assert score(tmp_path, "How long does a refund take?", "5 Tage").reason == "not judged: language de"
    assert score(tmp_path, "How long does a refund take?", "Cinq jours").reason == "not judged: language fr"


@pytest.mark.parametrize("answer", ["😀", "`x = 1`", "| a |\n|---|\n| 1 |", "no", "?", "\ud800", "Yes, yes, yes"])
@pytest.mark.parametrize("question", ["Warranty", "?", "How long?", "¿"])
def test_odd_questions_and_answers_end_in_a_score_or_a_reason(tmp_path: Path, question: str, answer: str) -> None:
    found = score(tmp_path, question, answer)
    assert (found.value is None) == bool(found.reason)


def test_of_passages_in_three_languages_those_in_the_answers_language_count(tmp_path: Path) -> None:
    mixed = (
        SHOP[0],
        "Die Rückerstattung dauert fünf Tage und wird auf die Karte gebucht.",
        "Le remboursement prend cinq jours et arrive sur la carte.",
    )
    asked = "How long does a refund take?"
    assert score(tmp_path, asked, "Five days", contexts=mixed).detail["hallucinated"] is False
    # A passage in another language may state it.
    assert score(tmp_path, asked, "Nine days", contexts=mixed).reason.startswith("not judged: language")
