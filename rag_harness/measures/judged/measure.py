"""What a judged measure is: it needs a judge, so its scores are files of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from rag_harness.errors import SettingsError
from rag_harness.measures.judged.opinion import Ask, Material, Opinion, Verdict, Verdicts
from rag_harness.measures.measure import Better, Need, Score, Unit
from rag_harness.types import Case


class JudgedMeasure(ABC):
    """A measure that a judge is asked for. Derive from it, set what differs, and register the class.

    Args:
        cutoff: what stands behind the ``@`` of the name; judged measures take none.

    Raises:
        SettingsError: there is a cutoff.
    """

    called: ClassVar[str]
    """The name, as it is registered."""
    asks: ClassVar[tuple[Ask, ...]]
    """What the judge is asked."""
    version: int = 1
    unit: Unit = "share"
    better: Better = "higher"
    worst: float | None = 0.0
    needs: tuple[Need, ...] = ("answer",)

    def __init__(self, cutoff: int | None = None) -> None:
        if cutoff is not None:
            raise SettingsError(
                f"Measure '{self.called}@{cutoff}' has a cutoff, but {self.called} takes none. Write {self.called!r}."
            )
        self.cutoff = cutoff
        self.name = self.called

    def applies(self, case: Case) -> str:  # noqa: ARG002 - those that depend on the case say so
        """Return why the measure means nothing for ``case``; empty where it applies."""
        return ""

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
    if not found.each:
        return Score(None, f"no claim in the {of}", detail)
    missing = [verdict for verdict in found.each if verdict.value is None]
    if missing:
        why = f"{len(missing)} of {len(found.each)} claims without a verdict: {missing[0].reason}"
        return Score(None, why, detail)
    share = found.share if found.share is not None else sum(values(found)) / len(found.each)
    return Score(share, detail=detail)


def values(found: Verdicts) -> list[float]:
    """Return the value of each verdict; of all, where none is missing."""
    return [verdict.value for verdict in found.each if verdict.value is not None]


def plain(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as the detail of a score has it."""
    claim = verdict.claim
    said: dict[str, object] = {"text": claim.text, "value": verdict.value}
    if claim.start >= 0:
        said |= {"start": claim.start, "end": claim.end}
    if verdict.passage is not None:
        said["passage"] = verdict.passage
    return said | ({"reason": verdict.reason} if verdict.reason else {})
