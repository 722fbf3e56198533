"""What is asked of a model about an answer beside claims: criteria in words, and how near it is to a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from rag_harness.errors import NotJudgedError
from rag_harness.expectations import Kept
from rag_harness.measures.judged.opinion import JudgeQuestion, Material, Opinion

CRITERIA = cast("JudgeQuestion", "criteria")
"""A question to a judge: which criteria does the answer meet? It is not in the alias ``JudgeQuestion``: the shipped
judgements are named by the text of that file."""
MOST_TOGETHER = 12
"""The most criteria that a judge is asked about in one call."""
MEETS_FROM = 0.5
"""Value from which an answer meets a criterion."""


@dataclass(frozen=True, slots=True)
class MaterialOfCase(Material):
    """An answer with what its case expects of it.

    Attributes:
        expected: the case's expectations, with what the row alone tells of each.
        criteria: all criteria that a judge is asked about, each once.
    """

    expected: tuple[Kept, ...] = ()
    criteria: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """A judge's verdict on one criterion.

    Attributes:
        criterion: the criterion, as it was asked.
        value: 1 if the answer meets it, 0 if not; some judges give a probability. None where the judge cannot tell.
        quote: the words of the answer that decide it; empty where no words do.
        start: where in the answer the quote begins; -1 where there is none.
        end: where the quote ends.
        reason: why there is no verdict, or what the judge says of it.
    """

    criterion: str
    value: float | None
    quote: str = ""
    start: int = -1
    end: int = -1
    reason: str = ""


@runtime_checkable
class OpinionOfCriteria(Protocol):
    """An opinion that answers the question ``CRITERIA``, too."""

    async def criteria(self) -> Sequence[CriterionVerdict]:
        """Return a verdict for each criterion of the material, in its order."""
        ...


@runtime_checkable
class OpinionOfNearness(Protocol):
    """An opinion that says how near the answer is to a text."""

    async def nearness(self, text: str) -> float:
        """Return the cosine of the answer and ``text``, in [-1, 1].

        Raises:
            RagHarnessError: it cannot be told, with the reason.
        """
        ...


async def criteria_met(opinion: Opinion, wanted: Sequence[str]) -> list[CriterionVerdict]:
    """Return the verdict on each criterion that is ``wanted``, from one opinion on all criteria of its material.

    Raises:
        NotJudgedError: the judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if not isinstance(opinion, OpinionOfCriteria):
        raise NotJudgedError("cannot be measured: this judge does not say which criteria an answer meets")
    said = {each.criterion: each for each in await opinion.criteria()}
    return [said.get(each, CriterionVerdict(each, None, reason="the judge was not asked")) for each in wanted]
