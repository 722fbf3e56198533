"""Diagnostics of right and wrong answers: RAGChecker's measures of the generator (Ru et al. 2024, arXiv 2408.08067).

They combine verdicts on the same claims by two sources. Where verdicts are probabilities, their products are used:
expected values.
"""

from __future__ import annotations

from abc import abstractmethod
from asyncio import gather

from rag_harness.errors import ModelOutputError
from rag_harness.measures.judged.measure import unusable, values, verdict_detail
from rag_harness.measures.judged.opinion import Material, Opinion, Support, SupportSource, Verdict, Verdicts
from rag_harness.measures.judged.reasons import ABSTAINED, FOUND_NOTHING, says_nothing
from rag_harness.measures.judged.truth import AgainstGroundTruth
from rag_harness.measures.measure import Score


class AnswerDiagnostic(AgainstGroundTruth):
    """A share of the answer's claims, by whether each is right and whether the context has it."""

    asks = (Support("answer", "ground_truth"), Support("answer", "contexts"))
    better, worst, needs = "lower", 1.0, ("answer", "retrieval")

    def undefined(self, material: Material) -> str:
        """Return why there is no ground truth to compare with, or no claim."""
        return super().undefined(material) or (ABSTAINED if material.abstained else "")

    def without_context(self, material: Material) -> None:
        """Return None: the ground truth tells which claims are right, and no context has any of them."""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if material.has_context:
            right, found = await gather(
                opinion.supported("answer", "ground_truth"), opinion.supported("answer", "contexts")
            )
        else:
            right = await opinion.supported("answer", "ground_truth")
            found = Verdicts(tuple(Verdict(said.claim, 0.0, reason=FOUND_NOTHING) for said in right.each))
        detail = {"claims": _both(right, "ground_truth", found, "contexts")}
        why = unusable(right, "answer") or unusable(found, "answer")
        if why:
            return Score(None, why, detail)
        shares = [self.counts(*pair) for pair in zip(values(right), values(found), strict=True)]
        return Score(sum(shares) / len(shares), detail=detail)

    @abstractmethod
    def counts(self, right: float, found: float) -> float:
        """Return the weight of a claim that is ``right`` (ground truth) and ``found`` (context), each in [0, 1]."""


class NoiseSensitivity(AnswerDiagnostic):
    """Claims of the answer that are wrong and that the context supports / claims: what the context misled it to say."""

    called = "noise_sensitivity"

    def counts(self, right: float, found: float) -> float:
        return (1 - right) * found


class SelfKnowledge(AnswerDiagnostic):
    """Claims of the answer that are right and that the context does not support / claims: what the model knew."""

    called = "self_knowledge"

    def counts(self, right: float, found: float) -> float:
        return right * (1 - found)


class ContextUtilisation(AgainstGroundTruth):
    """Claims of the ground truth in the context and in the answer / those in the context: what it made of them.

    0 where none is in the context.
    """

    called = "context_utilisation"
    asks = (Support("ground_truth", "contexts"), Support("ground_truth", "answer"))
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        found, said = await gather(
            opinion.supported("ground_truth", "contexts"), opinion.supported("ground_truth", "answer")
        )
        detail = {"claims": _both(found, "contexts", said, "answer")}
        why = unusable(found, "ground truth") or unusable(said, "ground truth")
        if why:
            return Score(None, why, detail)
        there = sum(values(found))
        if not there:
            return Score(0.0, "no claim of the ground truth in the context", detail)
        used = 0.0 if says_nothing(material) else sum(a * b for a, b in zip(values(found), values(said), strict=True))
        return Score(min(1.0, used / there), detail=detail)


def _both(first: Verdicts, name: SupportSource, second: Verdicts, other: SupportSource) -> list[dict[str, object]]:
    """Return each claim with both verdicts, by the name of their source.

    Raises:
        ModelOutputError: the verdicts are not on the same claims.
    """
    texts, others = ([verdict.claim.text for verdict in found.each] for found in (first, second))
    if texts != others:
        raise ModelOutputError(f"{name} and {other} were judged on other claims: {len(texts)} and {len(others)}")
    pairs = zip(first.each, second.each, strict=True)
    return [{"text": one.claim.text, name: verdict_detail(one), other: verdict_detail(two)} for one, two in pairs]
