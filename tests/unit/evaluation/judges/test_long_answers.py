"""Long answers: what the embedded judge reads of one before it asks its model, and what takes its marks off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag_harness.core.protocols import TextEmbedder
from rag_harness.core.text.language_detection import not_judged
from rag_harness.evaluation.judges.citation_marks import placed_claims, unmarked_answer
from rag_harness.evaluation.judges.embedded.alignment import split_text
from rag_harness.evaluation.judges.embedded.judge import readable_material
from rag_harness.evaluation.judges.embedded.judgement import JudgementReading
from rag_harness.evaluation.measures.opinion import Claim, Material
from tests.effort import check_growth
from tests.long_answers import LONG_ANSWERS, WORST

CONTEXTS = tuple(f"The lamp can be returned within 45 days, says page {number}." for number in range(5))


def _placed(text: str) -> None:
    plain = unmarked_answer(text, len(CONTEXTS))
    placed_claims(plain, [Claim(plain.text[start:end], start, end) for start, end in split_text(plain.text).sentences])


PARTS: dict[str, Callable[[str], object]] = {
    "readable text": lambda text: readable_material(Material("How long?", text, CONTEXTS, "45 days")),
    "language": lambda text: not_judged("How long?", text, "\n".join(CONTEXTS)),
    "what is missed": lambda text: JudgementReading(_no_model).missed(split_text(text), CONTEXTS, "How long?"),
    "places of claims": _placed,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", WORST)
def test_reading_an_answer_takes_time_as_it_is_long(part: str, name: str) -> None:
    check_growth(PARTS[part], LONG_ANSWERS[name][:50_000])


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_reading_the_longest_answer_takes_time_as_it_is_long(part: str, name: str) -> None:
    check_growth(PARTS[part], LONG_ANSWERS[name])


def _no_model() -> TextEmbedder:
    raise AssertionError("rules need no vectors")
