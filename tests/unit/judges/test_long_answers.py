"""Long answers: what the embedded judge reads of one before it asks its model, and what takes its marks off."""

from __future__ import annotations

import time

import pytest

from rag_harness.judges.citations import unmarked_answer
from rag_harness.judges.embedded.judgement_reading import JudgementReading
from rag_harness.judges.embedded.opinion import readable_material
from rag_harness.judges.embedded.words import split_text
from rag_harness.judges.placed_claims import placed_claims
from rag_harness.measures.judged import Claim, Material
from rag_harness.protocols import TextEmbedder
from rag_harness.words.language import not_judged
from tests.long_answers import LONG_ANSWERS

DEADLINE = 10.0
CONTEXTS = tuple(f"The lamp can be returned within 45 days, says page {number}." for number in range(5))


@pytest.mark.long
@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_no_answer_is_read_for_longer_than_the_deadline(name: str) -> None:
    material = Material("How long?", LONG_ANSWERS[name], CONTEXTS, "45 days")
    began = time.monotonic()
    plain = unmarked_answer(readable_material(material).answer, len(CONTEXTS))
    not_judged(material.question, plain.text, "\n".join(CONTEXTS))
    split = split_text(plain.text)
    JudgementReading(_no_model).missed(split, CONTEXTS, material.question)
    placed_claims(plain, [Claim(plain.text[start:end], start, end) for start, end in split.sentences])
    assert time.monotonic() - began < DEADLINE


def _no_model() -> TextEmbedder:
    raise AssertionError("rules need no vectors")
