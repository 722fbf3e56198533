"""Joins the scores of ``rag-harness judge score`` with labels of the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.errors import DataError
from rag_harness.judges.calibration.labels import AnswerLabel, at_most
from rag_harness.judges.calibration.lines import read_lines
from rag_harness.results.row import first_problem
from rag_harness.results.score import Author


class _Line(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")
    id: Any
    judge: str
    model: str
    revision: str
    scores: dict[str, float | None]


def with_scores(labels: Sequence[AnswerLabel], file: Path, measure: str) -> list[AnswerLabel]:
    """Return the labels with the scores of ``measure`` from ``file``, and with the judge that gave them.

    Raises:
        DataError: the file is missing or malformed, or lacks a labelled answer.
    """
    problems: list[str] = []
    said = _read(file, problems)
    problems += [
        f"{label.where}: {label.query_id!r} is not among the {len(said)} answers of {file}: judge it, too"
        for label in labels
        if not label.experiment and label.query_id not in said
    ]
    if problems:
        raise DataError("\n".join(at_most(problems)))
    return [label if label.experiment else _with(label, said[label.query_id], measure) for label in labels]


def _read(file: Path, problems: list[str]) -> Mapping[str, _Line]:
    said: dict[str, _Line] = {}
    for found in read_lines(file, problems):
        try:
            line = _Line.model_validate(found.values)
            said[str(line.id)] = line
        except ValidationError as error:
            problems.append(f"{found.where}: no line of rag-harness judge score: {first_problem(error)}")
    return said


def _with(label: AnswerLabel, line: _Line, measure: str) -> AnswerLabel:
    return replace(label, score=line.scores.get(measure), author=Author(line.judge, line.model, line.revision))
