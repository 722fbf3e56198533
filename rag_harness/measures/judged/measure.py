"""The base class of judged measures. A judge gives their scores, which have files of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from rag_harness.measures.judged.opinion import JudgeQuestion, Material, Opinion, Verdict, Verdicts
from rag_harness.measures.judged.reasons import FOUND_NOTHING
from rag_harness.measures.measure import NamedMeasure, Need, Score


class JudgedMeasure(NamedMeasure, ABC):
    """A measure whose scores come from a judge. Derive from it, set what differs, and register the class.

    One object serves many answers at the same time: store nothing of an answer in it.

    Args:
        cutoff: number after the ``@`` of the name; judged measures take none.

    Raises:
        SettingsError: there is a cutoff.
    """

    asks: ClassVar[tuple[JudgeQuestion, ...]]
    """The questions to the judge."""
    needs: tuple[Need, ...] = ("answer",)

    @abstractmethod
    def undefined(self, material: Material) -> str:
        """Return why the measure is undefined for this answer, e.g. "an abstention"; empty where it is defined.

        A case must not leave a mean because its pipeline did badly. So a missing context is no reason: where the
        experiment retrieves, ``without_context`` says the score; elsewhere no case has one.
        """

    def without_context(self, material: Material) -> Score | None:  # noqa: ARG002 - those that depend on it say so
        """Return the score of an answer whose experiment retrieves and has found nothing: the worst.

        It is asked only of measures that need a retrieval. None where the judge is asked all the same.
        """
        return None if self.worst is None else Score(self.worst, FOUND_NOTHING)

    @abstractmethod
    async def judge(self, material: Material, opinion: Opinion) -> Score:
        """Return the score of an answer that the measure is defined for.

        Raises:
            RagHarnessError: the judge gives no verdict; the score is then None with that reason.
        """


def supported_share(found: Verdicts, of: str) -> Score:
    """Return supported claims / claims. Where a claim has no verdict there is no score: the denominator never shrinks.

    ``of`` names the text with the claims, for the reason where there are none.
    """
    detail = {**found.detail, "claims": [verdict_detail(verdict) for verdict in found.each]}
    why = unusable(found, of)
    if why:
        return Score(None, why, detail)
    share = sum(values(found)) / len(found.each) if found.share is None else found.share
    return Score(share, detail=detail) if 0 <= share <= 1 else Score(None, f"share {share:g} is not in [0, 1]", detail)


def unusable(found: Verdicts, of: str) -> str:
    """Return why the verdicts on the claims of ``of`` give no score; empty where they do."""
    if not found.each:
        return f"no claim in the {of}"
    return missing([(verdict.value, verdict.reason) for verdict in found.each], "claims")


def missing(said: Sequence[tuple[float | None, str]], things: str) -> str:
    """Return how many ``things`` have no value in [0, 1], with the reason of the first; empty where all have one."""
    without = [(value, reason) for value, reason in said if value is None or not 0 <= value <= 1]
    if not without:
        return ""
    value, reason = without[0]
    why = reason or "no reason given" if value is None else f"{value:g} is not in [0, 1]"
    return f"{len(without)} of {len(said)} {things} without a verdict: {why}"


def values(found: Verdicts) -> list[float]:
    """Return the value of each verdict, where none is missing."""
    return [verdict.value for verdict in found.each if verdict.value is not None]


def verdict_detail(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as the dictionary in a score's detail."""
    claim = verdict.claim
    said: dict[str, object] = {"text": claim.text, "value": verdict.value}
    if claim.start >= 0:
        said |= {"start": claim.start, "end": claim.end}
    if claim.citations:
        said["citations"] = list(claim.citations)
    if verdict.passage is not None:
        said["passage"] = verdict.passage
    return said | ({"reason": verdict.reason} if verdict.reason else {})
