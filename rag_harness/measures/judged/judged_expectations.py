"""Expectations that need a model: those of one kind, and all of a case that has one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_harness.errors import CriticalError, NotJudgedError, RagHarnessError
from rag_harness.expectations import Finding, Kept, as_found, kept_share, kind_of, needs_model
from rag_harness.measures.judged.criteria import (
    CRITERIA,
    MEETS_FROM,
    CriterionVerdict,
    MaterialOfCase,
    OpinionOfNearness,
    criteria_met,
)
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Material, Opinion
from rag_harness.measures.measure import Need, Score
from rag_harness.types import Case, Expectation

EXPECTATIONS = "expectations"
NOT_JUDGED = "no judge was asked"
_NO_WORDS = "no words of the answer decide it"


class JudgedExpectations(JudgedMeasure):
    """The weighted share of a case's expectations that its answer keeps, where a model has to be asked about some.

    It has the name of the measure of a row: it gives that measure the values which rows alone do not tell.
    """

    called = EXPECTATIONS
    asks = (CRITERIA,)

    def applies(self, case: Case) -> str:
        """Return why no model has to be asked."""
        return "" if any(map(needs_model, case.expect)) else "its row alone tells what it keeps to"

    def undefined(self, material: Material) -> str:  # noqa: ARG002 - an empty answer breaks what is expected
        return ""

    def counts(self, each: Kept) -> bool:  # noqa: ARG002 - all of them count
        """Whether an expectation is one of those that the score is about."""
        return True

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        expected = material.expected if isinstance(material, MaterialOfCase) else ()
        counted = [each for each in expected if self.counts(each)]
        found = await _judged(counted, opinion)
        detail = {"expectations": [_detail(each) for each in found if needs_model(each.expectation)]}
        share, said = kept_share(found)
        return Score(share, said, detail)


class JudgedOfKind(JudgedExpectations):
    """The weighted share of a case's expectations of one kind that its answer keeps, as a model finds.

    Args:
        kind: the kind's registered name; one that needs a model.
        cutoff: number after the ``@``; there is none.
    """

    called = EXPECTATIONS
    needs: tuple[Need, ...] = ("answer",)

    def __init__(self, kind: str, cutoff: int | None = None) -> None:
        super().__init__(cutoff)
        self._kind, self.name = kind, f"expect_{kind}"

    def applies(self, case: Case) -> str:
        """Return why there is nothing of this kind to keep to."""
        return "" if any(each.kind == self._kind for each in case.expect) else f"no {self._kind} expected"

    def counts(self, each: Kept) -> bool:
        """Whether an expectation is of this kind."""
        return each.expectation.kind == self._kind


def judged_kinds(cases: Sequence[Case]) -> list[str]:
    """Return the kinds among the expectations of cases that need a model, each once."""
    kinds = dict.fromkeys(each.kind for case in cases for each in case.expect)
    return [kind for kind in kinds if kind_of(kind).asks != "nothing"]


def criteria_of(expected: Sequence[Kept]) -> list[str]:
    """Return the criteria that a judge is asked about, each once."""
    asked = (each.expectation for each in expected if kind_of(each.expectation.kind).asks == "criterion")
    return list(dict.fromkeys(kind_of(each.kind).criterion(each) for each in asked))


def as_judged(expected: Sequence[Kept], detail: Mapping[str, Any] | None) -> list[Kept]:
    """Return expectations with what a model said of them, from the detail of a score."""
    said = {each["expectation"]: each for each in (detail or {}).get("expectations", ())}
    return [_told(each, said.get(str(each.expectation))) for each in expected]


def _told(each: Kept, said: Mapping[str, Any] | None) -> Kept:
    if not needs_model(each.expectation):
        return each
    if said is None:
        return replace(each, said=NOT_JUDGED)
    return Kept(each.expectation, said["kept"], said["said"], said.get("start", -1), said.get("end", -1))


async def _judged(expected: Sequence[Kept], opinion: Opinion) -> list[Kept]:
    """Return expectations with what a model says of those that the row does not tell. A failure is a reason."""
    wanted = criteria_of(expected)
    met: dict[str, CriterionVerdict] = {}
    if wanted:
        try:
            met = dict(zip(wanted, await criteria_met(opinion, wanted), strict=True))
        except CriticalError:
            raise
        except RagHarnessError as error:
            met = {each: CriterionVerdict(each, None, reason=str(error)) for each in wanted}
    return [await _one(each, met, opinion) for each in expected]


async def _one(each: Kept, met: Mapping[str, CriterionVerdict], opinion: Opinion) -> Kept:
    kind = kind_of(each.expectation.kind)
    if kind.asks == "criterion":
        return as_found(each.expectation, _finding(met[kind.criterion(each.expectation)]))
    if kind.asks == "similarity":
        return as_found(each.expectation, await _similar(each.expectation, opinion))
    return each


def _finding(said: CriterionVerdict) -> Finding:
    if said.value is None:
        return Finding(None, said.reason or "the judge cannot tell")
    words = f"“{said.quote}”" if said.quote else said.reason or _NO_WORDS
    likely = "" if said.value in (0, 1) else f", p = {said.value:.2f}"
    return Finding(said.value >= MEETS_FROM, f"{words}{likely}", said.start, said.end)


async def _similar(demand: Expectation, opinion: Opinion) -> Finding:
    try:
        if not isinstance(opinion, OpinionOfNearness):
            raise NotJudgedError("this judge has no embedder")
        cosine = await opinion.nearness(str(demand.wanted))
    except CriticalError:
        raise
    except RagHarnessError as error:
        return Finding(None, str(error))
    return Finding(cosine >= demand.options["at_least"], f"its cosine is {cosine:.3f}")


def _detail(each: Kept) -> dict[str, object]:
    place = {"start": each.start, "end": each.end} if each.start >= 0 else {}
    return {"expectation": str(each.expectation), "kept": each.kept, "said": each.said, **place}
