"""Measures of the expectations of cases, all, of each kind.

Those that a judge decides; and the measure of a rubric.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import CriticalError, NotJudgedError, RagHarnessError
from rag_harness.core.types import Case, Expectation
from rag_harness.evaluation.expectations.rubrics import Criterion, Rubric, rubric_named
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import Measure, Need, RowMeasure, Score
from rag_harness.evaluation.measures.opinion import (
    CRITERIA,
    MEETS_FROM,
    OF_TURNS,
    CriterionVerdict,
    Material,
    MaterialOfCase,
    Opinion,
    OpinionOfNearness,
    criteria_met,
    levels_reached,
)
from rag_harness.records.document_ranking import document_in
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationResult,
    Finding,
    Source,
    as_found,
    as_json,
    kept_share,
    kind_of,
    known_kinds,
    looked_at,
    needs_model,
)

if TYPE_CHECKING:
    from rag_harness.records.row import ExperimentResult


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

    def counts(self, each: ExpectationResult) -> bool:  # noqa: ARG002 - all of them count
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

    def counts(self, each: ExpectationResult) -> bool:
        """Whether an expectation is of this kind."""
        return each.expectation.kind == self._kind


def judged_kinds(cases: Sequence[Case]) -> list[str]:
    """Return the kinds among the expectations of cases that need a model, each once."""
    kinds = dict.fromkeys(each.kind for case in cases for each in case.expect)
    return [kind for kind in kinds if kind_of(kind).asks != "nothing"]


def criteria_of(expected: Sequence[ExpectationResult]) -> list[str]:
    """Return the criteria that a judge is asked about, each once."""
    asked = (each.expectation for each in expected if kind_of(each.expectation.kind).asks == "criterion")
    return list(dict.fromkeys(kind_of(each.kind).criterion(each) for each in asked))


def as_judged(expected: Sequence[ExpectationResult], detail: Mapping[str, Any] | None) -> list[ExpectationResult]:
    """Return expectations with a model's findings, from the detail of a score."""
    said = {each["expectation"]: each for each in (detail or {}).get("expectations", ())}
    return [_told(each, said.get(str(each.expectation))) for each in expected]


def _told(each: ExpectationResult, said: Mapping[str, Any] | None) -> ExpectationResult:
    if not needs_model(each.expectation):
        return each
    if said is None:
        return replace(each, said=NOT_JUDGED)
    return ExpectationResult(each.expectation, said["kept"], said["said"], said.get("start", -1), said.get("end", -1))


async def _judged(expected: Sequence[ExpectationResult], opinion: Opinion) -> list[ExpectationResult]:
    """Return expectations, with a model's findings where the row does not decide. A failure is a reason."""
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


async def _one(each: ExpectationResult, met: Mapping[str, CriterionVerdict], opinion: Opinion) -> ExpectationResult:
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


def _detail(each: ExpectationResult) -> dict[str, object]:
    place = {"start": each.start, "end": each.end} if each.start >= 0 else {}
    return {"expectation": str(each.expectation), "kept": each.kept, "said": each.said, **place}


EXPECTATION_PREFIX = "expect_"
"""Begins the name of the measure of one kind: ``expect_contains``."""
_NONE = "no expectations"


class Expectations(RowMeasure):
    """The weighted share of a case's expectations that its answer keeps; 0 where one with ``must`` is not kept.

    Where a model has to be asked about one of them, the value comes from the judged scores.
    """

    called, needs, looks_by_expectations = EXPECTATIONS, ("answer",), True

    def applies(self, case: Case) -> str:
        """Return why there is nothing to keep to."""
        return "" if case.expect else _NONE

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if any(map(needs_model, case.expect)):
            return Score(None, NOT_JUDGED)
        share, said = kept_share(found_in(case, row, explained=False))
        return Score(share, said)


class ExpectationsOfKind(RowMeasure):
    """The weighted share of a case's expectations of one kind that its answer keeps.

    Args:
        kind: the kind's registered name.
        cutoff: number after the ``@``; there is none.
    """

    called = "expectations"
    needs: tuple[Need, ...] = ("answer",)
    looks_by_expectations = True

    def __init__(self, kind: str, cutoff: int | None = None) -> None:
        super().__init__(cutoff)
        self._kind, self.name = kind, f"{EXPECTATION_PREFIX}{kind}"

    def applies(self, case: Case) -> str:
        """Return why there is nothing of this kind to keep to."""
        return "" if any(each.kind == self._kind for each in case.expect) else f"no {self._kind} expected"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        share, said = kept_share(
            [each for each in found_in(case, row, explained=False) if each.expectation.kind == self._kind]
        )
        return Score(share, said)


def measure_of_kind(name: str) -> ExpectationsOfKind | JudgedOfKind | None:
    """Return the measure called ``expect_<kind>``; None where no kind is called so."""
    kind = name.removeprefix(EXPECTATION_PREFIX)
    if not name.startswith(EXPECTATION_PREFIX) or kind not in known_kinds():
        return None
    return ExpectationsOfKind(kind) if kind_of(kind).asks == "nothing" else JudgedOfKind(kind)


def demands_of(cases: Iterable[Case]) -> dict[str, str]:
    """Return a digest of what cases demand, by the measure that is about it. Other demands make another figure."""
    states: dict[str, Any] = {}
    for case in cases:
        for each in case.expect:
            said = json.dumps([case.query.query_id, as_json(each)], sort_keys=True, default=str).encode()
            for measure in (EXPECTATIONS, f"{EXPECTATION_PREFIX}{each.kind}"):
                states.setdefault(measure, blake2b(digest_size=8)).update(said)
    return {measure: state.hexdigest() for measure, state in states.items()}


def found_in(
    case: Case, row: ExperimentResult, explained: bool = True, judged: Mapping[str, Any] | None = None
) -> list[ExpectationResult]:
    """Return each expectation of a case with its finding in an answer.

    Args:
        case: the case.
        row: its answer.
        explained: whether to look for the words that the answer has instead of a missing text.
        judged: detail of the judged score of ``expectations``, used by those that need a model; None without one.
    """
    return as_judged(looked_at(case.expect, _seen(case, row, explained)), judged)


def numbers_kept(case: Case, row: ExperimentResult, expected: Sequence[Expectation]) -> list[int]:
    """Return the places, from 0, of the expectations that a row's answer keeps. None of them needs a model."""
    return [number for number, each in enumerate(found_among(case, row, expected)) if each.kept]


def found_among(case: Case, row: ExperimentResult, expected: Sequence[Expectation]) -> list[ExpectationResult]:
    """Return each of these expectations with its finding in an answer. None of them needs a model."""
    return looked_at(expected, _seen(case, row, explained=False))


def _seen(case: Case, row: ExperimentResult, explained: bool) -> AnswerSeen:
    calls = [call for stage in row.stages for call in stage.calls]
    reports_sources = bool(row.retrieved_chunks) or row.retrieval_time_ms is not None
    sources = [Source(document_in(case, each), each.text) for each in row.retrieved_chunks]
    usage = row.usage
    return AnswerSeen(
        text=row.llm_answer,
        declined=row.abstained,
        sources=sources if reports_sources else None,
        cited=row.citations,
        cited_wrongly=row.invalid_citations,
        decision=next((each.outcome for each in reversed(row.decisions) if each.name == "decision"), ""),
        confidence=row.confidence,
        ms=row.total_time_ms,
        usd=row.cost_usd,
        tokens=usage.prompt_tokens + usage.completion_tokens if usage.calls else None,
        explained=explained,
        finish_reason=next((each.finish_reason for each in reversed(calls) if each.finish_reason), ""),
    )


RUBRIC_PREFIX = "rubric_"
"""Begins the name of the measure of a rubric: ``rubric_tone`` is that of ``rubrics/tone.toml``."""


class RubricMeasure(JudgedMeasure):
    """The weighted share of a rubric's criteria that an answer meets; 0 where one that it must meet is not met.

    Its version is the rubric's: a score belongs to the criteria that were asked, and to no others. Without its rubric
    it reads scores, and judges nothing.

    Args:
        name: the rubric's name.
        rubric: its criteria.
        version: the version of the scores that are read, where the rubric is not here.
    """

    called = RUBRIC_PREFIX
    asks = (CRITERIA,)

    def __init__(self, name: str, rubric: Rubric | None = None, version: int = 1) -> None:
        super().__init__()
        self.name, self.rubric_name, self.rubric = f"{RUBRIC_PREFIX}{name}", name, rubric
        self.version = rubric.version if rubric else version

    def undefined(self, material: Material) -> str:  # noqa: ARG002 - any answer can be judged, an abstention too
        return ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        rubrics = material.rubrics if isinstance(material, MaterialOfCase) else {}
        rubric = self.rubric or rubrics.get(self.rubric_name)
        if rubric is None:
            return Score(None, f"the rubric {self.rubric_name!r} is not here")
        plain = [each for each in rubric.criteria if not each.levels]
        met = dict(zip(plain, await criteria_met(opinion, [each.text for each in plain]), strict=True))
        found = [
            _of_scale(each, await levels_reached(opinion, each)) if each.levels else _of_criterion(each, met[each])
            for each in rubric.criteria
        ]
        return _share(found)


class _CriterionValue:
    """A criterion with its value in [0, 1] and its explanation."""

    def __init__(self, criterion: Criterion, value: float | None, said: str, start: int = -1, end: int = -1) -> None:
        self.criterion, self.value, self.said, self.start, self.end = criterion, value, said, start, end

    def detail(self) -> dict[str, object]:
        place = {"start": self.start, "end": self.end} if self.start >= 0 else {}
        kept = None if self.value is None else self.value >= MEETS_FROM
        value = {} if self.value in (None, 0, 1) else {"value": self.value}
        return {"expectation": self.criterion.text, "kept": kept, "said": self.said, **value, **place}


def _of_criterion(criterion: Criterion, said: CriterionVerdict) -> _CriterionValue:
    words = f"“{said.quote}”" if said.quote else said.reason
    value = None if said.value is None else float(said.value >= MEETS_FROM)
    return _CriterionValue(criterion, value, words or "no words of the answer decide it", said.start, said.end)


def _of_scale(criterion: Criterion, said: tuple[float | None, str]) -> _CriterionValue:
    return _CriterionValue(criterion, *said)


def _share(found: Sequence[_CriterionValue]) -> Score:
    detail = {"expectations": [each.detail() for each in found]}
    lacking = [each for each in found if each.value is None]
    if lacking:
        why = (
            f"{len(lacking)} of {len(found)} criteria without a verdict: {lacking[0].criterion.text}: {lacking[0].said}"
        )
        return Score(None, why, detail)
    valued = [(each, each.value) for each in found if each.value is not None]
    short = [f"{each.criterion.text}: {each.said}" for each, value in valued if value < 1]
    for each, value in valued:
        if each.criterion.must and value < 1:
            return Score(0.0, f"must {each.criterion.text}: {each.said}", detail)
    total = sum(each.criterion.weight for each in found)
    return Score(sum(each.criterion.weight * value for each, value in valued) / total, "; ".join(short), detail)


def rubric_measure(name: str) -> RubricMeasure | None:
    """Return the measure called ``rubric_<name>``, without its criteria; None where the name is another one."""
    rubric = name.removeprefix(RUBRIC_PREFIX)
    return RubricMeasure(rubric) if name.startswith(RUBRIC_PREFIX) and rubric else None


def with_criteria(
    measures: Sequence[JudgedMeasure], rubrics: Mapping[str, Rubric], folder: Path
) -> list[JudgedMeasure]:
    """Return the measures. Measures of rubrics have their criteria.

    Raises:
        SettingsError: a rubric does not exist. The message suggests the nearest one.
    """
    return [
        RubricMeasure(each.rubric_name, rubric_named(each.rubric_name, rubrics, folder))
        if isinstance(each, RubricMeasure)
        else each
        for each in measures
    ]


def of_versions(measures: Sequence[Measure], versions: Mapping[str, int]) -> list[Measure]:
    """Return measures as they read the scores of a run: those of rubrics in the versions that it was judged by."""
    return [
        RubricMeasure(each.rubric_name, version=versions[each.name])
        if isinstance(each, RubricMeasure) and each.name in versions
        else each
        for each in measures
    ]


def versions_of(measures: Sequence[Measure]) -> dict[str, int]:
    """Return the versions of the measures of rubrics, by name."""
    return {each.name: each.version for each in measures if isinstance(each, RubricMeasure)}


def also_asking(material: Material, measures: Sequence[JudgedMeasure]) -> Material:
    """Return the material with the criteria of the rubrics among ``measures``."""
    rubrics = {each.rubric_name: each.rubric for each in measures if isinstance(each, RubricMeasure) and each.rubric}
    if not rubrics:
        return material
    if not isinstance(material, MaterialOfCase):
        material = MaterialOfCase(**{each.name: getattr(material, each.name) for each in fields(material)})
    asked = dict.fromkeys([*material.criteria, *(text for each in rubrics.values() for text in each.asked)])
    return replace(material, criteria=tuple(asked), rubrics=rubrics)


def kept_of_rubrics(details: Mapping[str, Mapping[str, Any]]) -> list[ExpectationResult]:
    """Return a judge's finding on each criterion, of rubrics and of turns, from the details of scores by measure."""
    return [
        ExpectationResult(
            Expectation("rubric", said["expectation"]),
            said["kept"],
            said["said"],
            said.get("start", -1),
            said.get("end", -1),
        )
        for name, detail in details.items()
        if name.startswith(RUBRIC_PREFIX) or name in OF_TURNS
        for said in detail.get("expectations", ())
    ]


KEPT = "kept"
"""The note of a turn's user stage: which of the scenario's ``reached`` earlier answers have kept, from 0."""


class GoalReached(RowMeasure):
    """1 where the answers of a conversation have reached the goal of its simulated user, and 0 where not.

    The goal is reached when each of the scenario's ``reached`` was kept by some answer. A conversation has one value,
    which belongs to its first turn.
    """

    called, of_conversation, looks_by_expectations = "goal_reached", True, True
    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why the case lacks a goal that could be reached."""
        if case.scenario is None:
            return "no simulated user asks it"
        return "" if case.scenario.reached else "its scenario does not say when the goal is reached"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        """Return whether the goal was reached by the end of this turn."""
        assert case.scenario is not None
        before = row.user.detail.get(KEPT, ()) if row.user is not None else ()
        kept = {*before, *numbers_kept(case, row, case.scenario.reached)}
        left = [str(each) for number, each in enumerate(case.scenario.reached) if number not in kept]
        return Score(float(not left), f"no answer has kept {'; '.join(left)}" if left else "")
