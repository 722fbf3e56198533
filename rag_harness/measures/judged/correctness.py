"""Correctness of an answer: its claims against those of the ground truth."""

from __future__ import annotations

from asyncio import gather

from rag_harness.measures.judged.measure import supported_share
from rag_harness.measures.judged.opinion import Material, Opinion, Support
from rag_harness.measures.judged.reasons import says_nothing
from rag_harness.measures.judged.truth import AgainstGroundTruth
from rag_harness.measures.measure import Score


class AnswerCorrectness(AgainstGroundTruth):
    """2PR / (P + R): P = claims of the answer that the ground truth supports / claims, R the other way round.

    RAGChecker's overall F1 (Ru et al. 2024); the detail has P and R. 0 where a right answer exists and none was given.
    """

    called = "answer_correctness"
    asks = (Support("answer", "ground_truth"), Support("ground_truth", "answer"))

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0, detail={"precision": None, "recall": 0.0})
        said, wanted = await gather(
            opinion.supported("answer", "ground_truth"), opinion.supported("ground_truth", "answer")
        )
        return _f1(supported_share(said, "answer"), supported_share(wanted, "ground truth"))


def _f1(precision: Score, recall: Score) -> Score:
    detail = {
        "precision": precision.value,
        "recall": recall.value,
        "claims": precision.detail["claims"],
        "ground_truth": recall.detail["claims"],
    }
    if precision.value is None or recall.value is None:
        return Score(None, precision.reason or recall.reason, detail)
    both = precision.value + recall.value
    return Score(2 * precision.value * recall.value / both if both else 0.0, detail=detail)
