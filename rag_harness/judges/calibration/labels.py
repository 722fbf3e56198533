"""Reads files of people's labels. One error lists all problems, each with file and line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rag_harness.errors import DataError
from rag_harness.judges.calibration.lines import FileLine, read_lines
from rag_harness.judges.calibration.sheet_key import key_of
from rag_harness.results.score import Author

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MOST_PROBLEMS = 20


def _number(value: Any) -> Any:
    """Accept a number as text, as CSV has it, and yes or no. Empty means not labelled."""
    if isinstance(value, str):
        text = value.strip().lower()
        return _WORDS.get(text, text or None)
    return value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


_Text = Annotated[str, BeforeValidator(_text)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Number = Annotated[_Finite | None, BeforeValidator(_number)]


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """One person's label of one answer.

    ``experiment`` and ``query_id`` name its row. For an answer outside any run the experiment is empty, and
    ``query_id`` is the answer's id. ``human`` is 0 or 1, or a rating. ``score`` is a judge's score, where the file has
    it, and ``author`` is that judge, where the file names it. ``where`` is file and line.
    """

    experiment: str
    query_id: str
    human: float
    rater: str = ""
    cluster: str = ""
    score: float | None = None
    answer: str = ""
    author: Author | None = None
    where: str = ""

    @property
    def item(self) -> tuple[str, str]:
        """The labelled answer."""
        return self.experiment, self.query_id


class _Line(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")
    experiment: _Text = ""
    query_id: _Text = ""
    id: _Text = ""
    item: _Text = ""
    human: _Number = None
    rater: _Text = ""
    cluster: _Text = ""
    score: _Number = None
    answer: str = ""
    judge: str = ""
    model: str = ""
    revision: _Text = ""

    @model_validator(mode="after")
    def _named(self) -> _Line:
        if not (self.item or self.id or (self.experiment and self.query_id)):
            raise ValueError("names no answer: give experiment and query_id of its row, or an id of its own")
        return self


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of some files, and the number of lines without a label."""

    each: tuple[AnswerLabel, ...]
    unlabelled: int = 0


def read_labels(files: Sequence[Path], key: Path | None = None) -> Labels:
    """Read labels, JSON Lines or CSV. Labels of several people are several lines, or files, about the same answers.

    Args:
        files: files of labels, or filled sheets.
        key: file that says which row each item of a sheet is; by default the file beside the sheet.

    Raises:
        DataError: a file is missing, nothing in it is labelled, or lines are malformed, each as ``file:line: …``.
    """
    problems: list[str] = []
    labels: list[AnswerLabel] = []
    unlabelled = 0
    for file in files:
        for found in read_lines(file, problems):
            label = _label(found, key, problems)
            unlabelled += label is None
            labels += [label] if label else []
    problems += _twice(labels)
    if problems:
        raise DataError("\n".join(at_most(problems)))
    if not labels:
        named = ", ".join(map(str, files))
        raise DataError(f"Nothing is labelled in {named}: write 0 or 1, or a rating, into 'human' of each line.")
    return Labels(tuple(labels), unlabelled)


def scaled(labels: Sequence[AnswerLabel], low: float, high: float) -> list[AnswerLabel]:
    """Return the labels with their ratings, ``low`` to ``high``, scaled to 0 to 1.

    Raises:
        DataError: a rating is outside the range, or the range is empty.
    """
    if not (isfinite(low) and isfinite(high) and low < high):
        raise DataError(f"A scale goes from a lower to a higher number, e.g. 1:5; got {low:g}:{high:g}.")
    beyond = [
        f"{label.where}: human: {label.human:g} is not from {low:g} to {high:g}"
        for label in labels
        if not low <= label.human <= high
    ]
    if beyond:
        hint = "Name the scale of your ratings: --scale 1:5." if (low, high) == (0, 1) else "Correct them, or --scale."
        raise DataError("\n".join([*at_most(beyond), hint]))
    return [replace(label, human=(label.human - low) / (high - low)) for label in labels]


def _label(found: FileLine, key: Path | None, problems: list[str]) -> AnswerLabel | None:
    try:
        line = _Line.model_validate(found.values)
    except ValidationError as error:
        problems += [f"{found.where}: {_said(each)}" for each in error.errors()]
        return None
    if line.human is None:
        return None
    try:
        experiment, query_id = _row_of(line, found, key)
    except DataError as error:
        problems.append(f"{found.where}: {error}")
        return None
    author = Author(line.judge, line.model, line.revision) if line.judge else None
    return AnswerLabel(
        experiment, query_id, line.human, line.rater, line.cluster, line.score, line.answer, author, found.where
    )


def _row_of(line: _Line, found: FileLine, key: Path | None) -> tuple[str, str]:
    if line.experiment and line.query_id:
        return line.experiment, line.query_id
    return ("", line.id) if line.id else key_of(line.item, found.file, key)


def _said(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{field}: {message}; found {error['input']!r}" if field else message


def _twice(labels: Sequence[AnswerLabel]) -> list[str]:
    seen: dict[tuple[str, str, str], str] = {}
    problems = []
    for label in labels:
        first = seen.setdefault((*label.item, label.rater), label.where)
        if first != label.where:
            who = f"by {label.rater!r}" if label.rater else "without a rater: name who said what"
            problems.append(
                f"{label.where}: {'-'.join(filter(None, label.item))} is labelled twice {who}, first at {first}"
            )
    return problems


def at_most(problems: Sequence[str]) -> list[str]:
    """Return the first problems, as many as a person reads, and the number of the others."""
    beyond = len(problems) - _MOST_PROBLEMS
    return [*problems[:_MOST_PROBLEMS], *([f"and {beyond} more"] if beyond > 0 else [])]
