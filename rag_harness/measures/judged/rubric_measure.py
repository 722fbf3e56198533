"""The measure of a rubric: how far an answer does what its criteria say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rag_harness.expectations import Kept
from rag_harness.expectations.rubrics import Criterion, Rubric, rubric_named
from rag_harness.measures.judged.criteria import (
    CRITERIA,
    MEETS_FROM,
    CriterionVerdict,
    MaterialOfCase,
    criteria_met,
    levels_reached,
)
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Material, Opinion
from rag_harness.measures.judged.turn_criteria import OF_TURNS
from rag_harness.measures.measure import Measure, Score
from rag_harness.types import Expectation

PREFIX = "rubric_"
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

    called = PREFIX
    asks = (CRITERIA,)

    def __init__(self, name: str, rubric: Rubric | None = None, version: int = 1) -> None:
        super().__init__()
        self.name, self.rubric_name, self.rubric = f"{PREFIX}{name}", name, rubric
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


class _Found:
    """A criterion with its value in [0, 1], and what is said of it."""

    def __init__(self, criterion: Criterion, value: float | None, said: str, start: int = -1, end: int = -1) -> None:
        self.criterion, self.value, self.said, self.start, self.end = criterion, value, said, start, end

    def detail(self) -> dict[str, object]:
        place = {"start": self.start, "end": self.end} if self.start >= 0 else {}
        kept = None if self.value is None else self.value >= MEETS_FROM
        value = {} if self.value in (None, 0, 1) else {"value": self.value}
        return {"expectation": self.criterion.text, "kept": kept, "said": self.said, **value, **place}


def _of_criterion(criterion: Criterion, said: CriterionVerdict) -> _Found:
    words = f"“{said.quote}”" if said.quote else said.reason
    value = None if said.value is None else float(said.value >= MEETS_FROM)
    return _Found(criterion, value, words or "no words of the answer decide it", said.start, said.end)


def _of_scale(criterion: Criterion, said: tuple[float | None, str]) -> _Found:
    return _Found(criterion, *said)


def _share(found: Sequence[_Found]) -> Score:
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
    rubric = name.removeprefix(PREFIX)
    return RubricMeasure(rubric) if name.startswith(PREFIX) and rubric else None


def with_criteria(
    measures: Sequence[JudgedMeasure], rubrics: Mapping[str, Rubric], folder: Path
) -> list[JudgedMeasure]:
    """Return measures, those of rubrics with their criteria.

    Raises:
        SettingsError: there is no such rubric; suggests the nearest one.
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


def kept_of_rubrics(details: Mapping[str, Mapping[str, Any]]) -> list[Kept]:
    """Return what a judge found of each criterion, of rubrics and of turns, from the details of scores by measure."""
    return [
        Kept(
            Expectation("rubric", said["expectation"]),
            said["kept"],
            said["said"],
            said.get("start", -1),
            said.get("end", -1),
        )
        for name, detail in details.items()
        if name.startswith(PREFIX) or name in OF_TURNS
        for said in detail.get("expectations", ())
    ]
