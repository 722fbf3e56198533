"""Planted faults: each is caught, and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import BY_LLM, Draft, TakenQuestions, draft_fault
from rag_harness.core.types import Document, Evidence
from tests.unit.authoring.questions.shop import documents

SEAL = Evidence("returns.md", "If the parcel seal is broken, we refund half of the price.")
GOOD = Draft(
    "direct",
    "What happens if the parcel seal is broken?",
    "What happens if the parcel seal is broken?",
    "If the parcel seal is broken, we refund half of the price.",
    "we refund half of the price.",
    (SEAL,),
    ("condition",),
)
FERRY = Evidence("delivery.md", "If the ferry is cancelled, we call the recipient first.")
BOTH = replace(
    GOOD,
    kind="multi_hop",
    plain="What happens if the parcel seal is broken, and what happens if the ferry is cancelled?",
    evidence=(SEAL, FERRY),
    answer="we refund half of the price. we call the recipient first.",
)
NEGATIVE = replace(GOOD, kind="negative", plain="What is the height of Pine Lantern?", evidence=(), answer="")


@pytest.fixture
def collection() -> DocumentCollection:
    return DocumentCollection(documents())


@pytest.mark.parametrize("draft", [GOOD, BOTH, NEGATIVE])
def test_what_is_sound_passes(draft: Draft, collection: DocumentCollection) -> None:
    assert draft_fault(draft, collection) is None


ALTERED = replace(SEAL, quote=SEAL.quote.replace("half", "halt"))
LEAKING = "Do you refund half of the price if the parcel seal is broken?"
POINTING = "points at something outside of the question"


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        (replace(GOOD, evidence=(ALTERED,)), "the evidence is not in the page"),
        (replace(GOOD, evidence=(replace(SEAL, filename="gone.md"),)), "the evidence is not in the page"),
        (replace(GOOD, answer="we refund two thirds"), "the evidence does not hold the answer"),
        (replace(GOOD, text="Seal broken?"), "too short or too long"),
        (replace(GOOD, plain="What happens if it is broken by the parcel seal?"), POINTING),
        (replace(GOOD, plain="What happens?"), "says too little"),
        (replace(GOOD, plain=LEAKING), "the question holds the answer"),
        (replace(GOOD, plain="What happens on the quay with a driver card?"), "its words lead to other pages"),
        (replace(BOTH, evidence=(SEAL,), answer=GOOD.answer), "one page alone holds all evidence"),
        (replace(NEGATIVE, plain="What is the weight of Pine Lantern?"), "a passage may answer it"),
    ],
)
def test_a_planted_fault_is_named(draft: Draft, fault: str, collection: DocumentCollection) -> None:
    assert draft_fault(draft, collection) == fault


def test_a_page_that_has_it_all_answers_no_question_of_two_pages(collection: DocumentCollection) -> None:
    whole = Document("whole.md", f"# All\n\n{SEAL.quote} {FERRY.quote}\n", "All")
    wide = DocumentCollection([*collection.documents, whole])
    evidence = (SEAL, replace(FERRY, filename="whole.md"))
    assert draft_fault(replace(BOTH, evidence=evidence), wide) == "one page alone holds all evidence"


def test_another_page_that_says_the_same_makes_it_ambiguous(collection: DocumentCollection) -> None:
    rival = Document("rival.md", f"# Rival\n\n{SEAL.quote}\n", "Rival")
    assert draft_fault(GOOD, DocumentCollection([*collection.documents, rival])) == "another page may answer it too"


def test_a_superseded_page_is_no_rival(collection: DocumentCollection) -> None:
    old = Document("old.md", f"# Old\n\n{SEAL.quote}\n", "Old", {"status": "outdated"})
    assert draft_fault(GOOD, DocumentCollection([*collection.documents, old])) is None


def test_a_model_may_say_it_in_its_own_words_but_not_of_another_thing(collection: DocumentCollection) -> None:
    written = replace(GOOD, made_of=(BY_LLM,), plain="The parcel seal was broken when it came. What do you give back?")
    assert draft_fault(replace(written, answer="You refund half of the price."), collection) is None
    held = "the evidence does not hold the answer"
    assert draft_fault(replace(written, answer="Everything within nine weeks by cheque."), collection) == held


@pytest.mark.parametrize(
    "again", ["What happens if the parcel seal is broken?", "If the parcel seal is broken, what happens?"]
)
def test_what_was_asked_is_not_asked_again(again: str) -> None:
    asked = TakenQuestions()
    asked.add(GOOD)
    other = replace(GOOD, evidence=(FERRY,))
    assert asked.fault_of(replace(other, text=again)) == "asked already"
    assert asked.fault_of(replace(other, text="How heavy is Brass Lantern?")) is None
    assert asked.fault_of(replace(GOOD, text="How heavy is Brass Lantern?")) == "asked already"


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"evidence": (FERRY,)}, "somebody rejected it"),
        ({"evidence": (FERRY,), "text": "If the parcel seal is broken, what happens?"}, "somebody rejected it"),
        ({"text": "How heavy is Brass Lantern?"}, "somebody rejected it"),
        ({"text": "How heavy is Brass Lantern?", "made_of": ("purpose",)}, None),
        ({"text": "How heavy is Brass Lantern?", "ground_truth": "It weighs 2 kg."}, None),
    ],
    ids=["the question", "its words", "the fact", "a fact of another kind", "what else its sentence says"],
)
def test_a_rejected_question_and_its_fact_are_not_asked_for_again(changed: dict[str, Any], fault: str | None) -> None:
    asked = TakenQuestions(rejected=[replace(GOOD, answer="")])
    assert asked.fault_of(replace(GOOD, **changed)) == fault


def test_of_negative_questions_the_words_alone_count() -> None:
    one = replace(GOOD, kind="negative", evidence=(), ground_truth="", text="Who paints the ferry?")
    asked = TakenQuestions(rejected=[one])
    assert asked.fault_of(one) == "somebody rejected it"
    assert asked.fault_of(replace(one, text="How heavy is Brass Lantern?")) is None
