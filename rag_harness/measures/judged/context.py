"""Measures of the retrieved context against the ground truth. They do not depend on the answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rag_harness.errors import ModelOutputError
from rag_harness.measures.judged.measure import missing, supported_share
from rag_harness.measures.judged.opinion import Material, Opinion, Support, Usefulness
from rag_harness.measures.judged.truth import AgainstGroundTruth
from rag_harness.measures.measure import Score


class ContextPrecision(AgainstGroundTruth):
    """Σ P@i · v_i / Σ v over the chunks, v_i = 1 where chunk i was useful, P@i = the mean of the first i.

    Average precision as RAGAS defines it (Es et al. 2023), without its 1e-10: it measures how high the useful
    chunks rank. 0 where no chunk is useful. Probabilities go into the same formula.
    """

    called = "context_precision"
    asks = ("usefulness",)
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        """Return the average precision; None where a chunk has no verdict.

        Raises:
            ModelOutputError: the judge did not judge each chunk exactly once.
        """
        said = await opinion.usefulness()
        if len(said) != len(material.contexts):
            raise ModelOutputError(f"{len(said)} verdicts for {len(material.contexts)} chunks")
        detail = {"chunks": [_plain(one) for one in said]}
        why = missing([(one.value, one.reason) for one in said], "chunks")
        useful = [one.value for one in said if one.value is not None]
        return Score(None, why, detail) if why else Score(average_precision(useful), detail=detail)


class ContextRecall(AgainstGroundTruth):
    """Claims of the ground truth that the context supports / claims (RAGAS; RAGChecker, Ru et al. 2024)."""

    called = "context_recall"
    asks = (Support("ground_truth", "contexts"),)
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        return supported_share(await opinion.supported("ground_truth", "contexts"), "ground truth")


def average_precision(useful: Sequence[float]) -> float:
    """Return Σ P@i · v_i / Σ v of values in [0, 1], best rank first; 0 where all are 0."""
    total = sum(useful)
    if not total:
        return 0.0
    precisions = (found / rank for rank, found in enumerate(accumulate(useful), 1))
    return min(1.0, sum(at * value for at, value in zip(precisions, useful, strict=True)) / total)


def _plain(said: Usefulness) -> dict[str, object]:
    return {"value": said.value} | ({"reason": said.reason} if said.reason else {})
