"""No printed reason is untrue: what it says no passage says, no passage says in any form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.text.language_detection import answer_not_judged
from rag_harness.evaluation.judges.embedded.alignment import split_text
from rag_harness.evaluation.judges.embedded.quantities import quantities, sentence_of
from rag_harness.evaluation.judges.embedded.short_answers import decide, is_short
from rag_harness.evaluation.judges.embedded.unsupported_details import absent
from rag_harness.evaluation.judges.embedded.values import is_stated, restated

CASES = [
    json.loads(line)
    for file in sorted((Path(__file__).parents[5] / "benchmarks" / "short_answers").glob("dev*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
_VALUE = 3
"""Most words of a value; more are a quoted sentence."""
UNSAID, INSTEAD = ": no passage says it", ": the passage says "


def reasons(case: Mapping[str, Any]) -> list[str]:
    question, answer, contexts = case["question"], case["answer"], case["contexts"]
    if answer_not_judged(question, answer, contexts):
        return []
    text = split_text(answer)
    if is_short(answer, len(text.sentences)):
        return [decide(question, answer, contexts).reason]
    return absent(text, [split_text(context) for context in contexts], question)


def test_a_value_that_is_called_unsaid_is_in_no_passage() -> None:
    said = [(why.removesuffix(UNSAID), case) for case in CASES for why in reasons(case) if why.endswith(UNSAID)]
    assert len(said) > 20
    assert [(what, case["id"]) for what, case in said if is_stated(what, case["contexts"])] == []


def test_of_right_answers_no_value_is_called_unsaid() -> None:
    right = [case for case in CASES if case["label"] == "faithful"]
    assert [(why, case["id"]) for case in right for why in reasons(case) if why.endswith(UNSAID)] == []


def test_what_a_passage_says_instead_is_another_value() -> None:
    pairs = [why.split(INSTEAD) for case in CASES for why in reasons(case) if INSTEAD in why]
    assert len(pairs) > 20
    assert [
        (ours, theirs)
        for ours, theirs in pairs
        if len(theirs.split()) <= _VALUE and quantities(theirs) and is_stated(ours, [theirs])
    ] == []


@pytest.mark.parametrize(
    ("said", "passage"),
    [
        ("three months", "The fee is 18 pounds per quarter."),
        ("a week", "Prescriptions are valid for twenty-eight days; special ones for seven."),
        ("20 cents", "A copy costs €0.20."),
        ("fourteen days", "Drink it within a fortnight."),
        ("12,000 km", "Rotate them every ten to twelve thousand kilometres."),
        ("5:50 pm", "The last cabin comes down at 17:50."),
    ],
)
def test_a_value_in_another_form_is_stated(said: str, passage: str) -> None:
    assert is_stated(said, [passage])


@pytest.mark.parametrize(
    ("said", "passage"), [("eight days", "It takes a week."), ("$5", "It costs 5 francs."), ("6:50 pm", "Until 17:50.")]
)
def test_another_value_is_not_stated(said: str, passage: str) -> None:
    assert not is_stated(said, [passage])


def test_models_read_values_as_the_passage_writes_them() -> None:
    source = [sentence_of("Prescriptions are valid for twenty-eight days.")]
    assert restated("They are valid for four weeks.", source) == "They are valid for twenty-eight days."
    assert restated("They are valid for 18 days.", source) == "They are valid for 18 days."
