"""What a judged measure is: it needs a judge, so its scores are files of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from rag_harness.measures.judged.opinion import Ask, Material, Opinion, Verdict, Verdicts
from rag_harness.measures.measure import NamedMeasure, Need, Score


class JudgedMeasure(NamedMeasure, ABC):
    """A measure that a judge is asked for. Derive from it, set what differs, and register the class.

    One object is asked about many answers at a time: keep nothing of an answer in it.

    Args:
        cutoff: what stands behind the ``@`` of the name; judged measures take none.

    Raises:
        SettingsError: there is a cutoff.
    """

    asks: ClassVar[tuple[Ask, ...]]
    """What the judge is asked."""
    needs: tuple[Need, ...] = ("answer",)

    @abstractmethod
    def undefined(self, material: Material) -> str:
        """Return why the measure means nothing for this answer, as what it has: "no context"; empty where it does."""

    @abstractmethod
    async def judge(self, material: Material, opinion: Opinion) -> Score:
        """Return the score of an answer that the measure is defined for.

        Raises:
            RagHarnessError: the judge cannot say; the score is then None with that reason.
        """


def supported_share(found: Verdicts, of: str) -> Score:
    """Return supported claims / claims. Where one has no verdict there is no score: a denominator never shrinks.

    ``of`` says whose claims they are, for the reason where there are none.
    """
    detail = {**found.detail, "claims": [plain(verdict) for verdict in found.each]}
    why = unusable(found, of)
    if why:
        return Score(None, why, detail)
    share = sum(values(found)) / len(found.each) if found.share is None else found.share
    return Score(share, detail=detail) if 0 <= share <= 1 else Score(None, f"share {share:g} is not in [0, 1]", detail)


def unusable(found: Verdicts, of: str) -> str:
    """Return why no score can be made of the verdicts on the claims of ``of``; empty where one can."""
    if not found.each:
        return f"no claim in the {of}"
    return missing([(verdict.value, verdict.reason) for verdict in found.each], "claims")


def missing(said: Sequence[tuple[float | None, str]], things: str) -> str:
    """Return how many of the ``things`` have no value in [0, 1], with the reason of the first; empty where all do."""
    without = [(value, reason) for value, reason in said if value is None or not 0 <= value <= 1]
    if not without:
        return ""
    value, reason = without[0]
    why = reason or "no reason given" if value is None else f"{value:g} is not in [0, 1]"
    return f"{len(without)} of {len(said)} {things} without a verdict: {why}"


def values(found: Verdicts) -> list[float]:
    """Return the value of each verdict; of all, where none is missing."""
    return [verdict.value for verdict in found.each if verdict.value is not None]


def plain(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as the detail of a score has it."""
    claim = verdict.claim
    said: dict[str, object] = {"text": claim.text, "value": verdict.value}
    if claim.start >= 0:
        said |= {"start": claim.start, "end": claim.end}
    if claim.citations:
        said["citations"] = list(claim.citations)
    if verdict.passage is not None:
        said["passage"] = verdict.passage
    return said | ({"reason": verdict.reason} if verdict.reason else {})
