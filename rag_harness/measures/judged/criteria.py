"""What is asked of a model about an answer beside claims: criteria in words, and how near it is to a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast, runtime_checkable

from rag_harness.errors import NotJudgedError
from rag_harness.expectations import Kept
from rag_harness.expectations.rubrics import Criterion, Rubric
from rag_harness.measures.judged.opinion import JudgeQuestion, Material, Opinion

CRITERIA = cast("JudgeQuestion", "criteria")
"""A question to a judge: which criteria does the answer meet? It is not in the alias ``JudgeQuestion``."""
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
        rubrics: the rubrics that the answer is held against, by name.
    """

    expected: tuple[Kept, ...] = ()
    criteria: tuple[str, ...] = ()
    rubrics: Mapping[str, Rubric] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class LevelReached:
    """How far up a scale an answer is, from 0 on the worst level to 1 on the best; ``said`` names the level."""

    value: float
    said: str


@runtime_checkable
class OpinionOfLevels(Protocol):
    """An opinion that says how far up a scale the answer is."""

    async def level(self, scale: Criterion) -> LevelReached | None:
        """Return how far up a scale the answer is; None where only binary criteria tell."""
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


async def levels_reached(opinion: Opinion, scale: Criterion) -> tuple[float | None, str]:
    """Return how far up a scale an answer is, from 0 to 1, and what is said of it: the share of its levels above the
    worst that the answer reaches, where the judge does not tell more.

    Raises:
        NotJudgedError: the judge does not answer this question.
        RagHarnessError: the judge failed.
    """
    if isinstance(opinion, OpinionOfLevels) and (level := await opinion.level(scale)) is not None:
        return level.value, level.said
    met = await criteria_met(opinion, scale.asked)
    lacking = next((each for each in met if each.value is None), None)
    if lacking is not None:
        return None, lacking.reason or "the judge cannot tell"
    reached = [each.value is not None and each.value >= MEETS_FROM for each in met]
    name = scale.levels[sum(reached)]
    words = next((f": “{each.quote}”" for each in met if each.quote), "")
    return sum(reached) / len(reached), f"{name}{words}"
