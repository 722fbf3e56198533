"""Writes the scores of any system's answers, one line of JSON each, and sums them up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.judges.answers.answers_file import check_answers, read_answers
from rag_harness.judges.answers.judging_answers import AskedMeasures, JudgedAnswer, judge_answers
from rag_harness.measures import Score
from rag_harness.measures.judged import Judge
from rag_harness.results.storable import storable
from rag_harness.settings import Settings
from rag_harness.stats import mean_or_none

_REASONS = 3
"""Most reasons that are printed for a measure."""


@dataclass
class MeasureTally:
    """Values and reasons of each measure, counted."""

    names: Sequence[str]
    values: dict[str, list[float]] = field(init=False)
    failed: dict[str, Counter[str]] = field(init=False)
    undefined: dict[str, Counter[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {name: [] for name in self.names}
        self.failed = {name: Counter() for name in self.names}
        self.undefined = {name: Counter() for name in self.names}

    @property
    def measured(self) -> bool:
        """Whether anything was measured."""
        return any(self.values.values())

    def add(self, scores: Mapping[str, Score]) -> None:
        """Add the scores of an answer."""
        for name, score in scores.items():
            if score.value is not None:
                self.values[name].append(score.value)
            else:
                (self.undefined if score.undefined else self.failed)[name][score.reason] += 1

    def lines(self) -> list[str]:
        """Return mean and number of values of each measure, and the number of missing values by reason."""
        return [line for name in self.values for line in self._of(name)]

    def _of(self, name: str) -> Iterator[str]:
        values = self.values[name]
        mean = mean_or_none(values)
        yield f"{name}: {'not measured' if mean is None else f'{mean:.3f}'} (n = {len(values)})"
        yield from _why("not measured", self.failed[name])
        yield from _why("undefined", self.undefined[name])


async def score_file(
    answers: Path, scores: Path, asked: AskedMeasures, judge: Judge, settings: Settings, abstains: Callable[[str], bool]
) -> MeasureTally:
    """Judge the answers of a file, write their scores to another, and return their tally.

    Args:
        answers: file of answers, see ``AnswerLine``.
        scores: file to write; an older one is replaced.
        asked: the requested measures.
        judge: the judge.
        settings: number of answers in flight, and seconds for each.
        abstains: decides whether an answer abstains, where its line does not say so.

    Raises:
        DataError: the answers cannot be read; lists every problem.
        PrerequisiteError: the scores cannot be written.
    """
    if scores.resolve() == answers.resolve():
        raise PrerequisiteError(f"{scores} holds the answers: name another file for the scores with -o.")
    check_answers(answers)
    tally, given = MeasureTally(asked.names), read_answers(answers, abstains)
    judged = judge_answers(given, asked, judge, settings.concurrency, settings.deadline)
    await write_scores(judged, scores, judge, tally)
    return tally


async def write_scores(judged: AsyncIterable[JudgedAnswer], file: Path, judge: Judge, tally: MeasureTally) -> None:
    """Write a line to ``file`` as soon as each answer is judged, so that an interrupted run keeps its scores.

    Raises:
        PrerequisiteError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            async for answer in judged:
                tally.add(answer.scores)
                stream.write(_line(answer, judge))
                stream.flush()
    except OSError as error:
        raise PrerequisiteError(f"{file} cannot be written: {error.strerror}. Name another one with -o.") from error


def _line(answer: JudgedAnswer, judge: Judge) -> bytes:
    scores = answer.scores
    content = {
        "id": answer.given.id,
        "judge": judge.name,
        "model": judge.model,
        "revision": judge.revision,
        "scores": {name: score.value for name, score in scores.items()},
        "reasons": {name: score.reason for name, score in scores.items() if score.value is None},
        "undefined": [name for name, score in scores.items() if score.undefined],
        **_hallucinated(scores),
        "details": {name: dict(score.detail) for name, score in scores.items() if score.detail},
    }
    return json.dumps(storable(content), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _hallucinated(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Return the verdict on the whole answer, where the judge has a fitted threshold."""
    said = scores["faithfulness"].detail if "faithfulness" in scores else {}
    return {"hallucinated": said["hallucinated"]} if "hallucinated" in said else {}


def _why(what: str, reasons: Counter[str]) -> Iterator[str]:
    if not reasons:
        return
    told = [f"{reason} ({count})" if len(reasons) > 1 else reason for reason, count in reasons.most_common(_REASONS)]
    more = len(reasons) - len(told)
    yield f"  {reasons.total()} {what}: {'; '.join(told)}{f'; {more} other reasons' if more else ''}"
