"""Relevancy of an answer to its question. A wrong answer may be relevant."""

from __future__ import annotations

from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Material, Opinion, Relevancy
from rag_harness.measures.judged.reasons import RIGHT_ABSTENTION, says_nothing
from rag_harness.measures.measure import Score

_ROUNDING = 1e-6


class AnswerRelevancy(JudgedMeasure):
    """Mean cosine of the question and those that the answer would answer (RAGAS, Es et al. 2023), raw: in [-1, 1].

    0 where the answer is noncommittal. An abstention is 0 where the documents have the answer. Where they have none,
    it is right, and the measure is undefined.
    """

    called = "answer_relevancy"
    asks = ("relevancy",)
    unit = "score"

    def undefined(self, material: Material) -> str:
        """Return why no answer was expected."""
        return RIGHT_ABSTENTION if material.abstained and not material.answerable else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0, detail={"noncommittal": True})
        return _score(await opinion.relevancy())


def _score(said: Relevancy) -> Score:
    detail = {**said.detail, "noncommittal": said.noncommittal}
    if said.noncommittal:
        return Score(0.0, detail=detail)
    if said.value is None:
        return Score(None, said.reason or "the judge gave no cosine", detail)
    if not abs(said.value) <= 1 + _ROUNDING:
        return Score(None, f"cosine {said.value} is not in [-1, 1]", detail)
    return Score(max(-1.0, min(1.0, said.value)), detail=detail)
