"""The values of measures: of each configuration, one a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.derived.tuning.asking import JudgedRows, RowsByQuery
from rag_harness.gates.grammar import Gate
from rag_harness.measures import RowMeasure, Score, is_judged, measure_named, scored
from rag_harness.results.row import ExperimentResult
from rag_harness.stats import Interval, mean_interval, quantile, quantile_interval
from rag_harness.stats.inputs import UndefinedError
from rag_harness.types import Case

_SURE = 0.999


@dataclass
class Values:
    """What one configuration came to, question by question.

    Attributes:
        of: by measure, the value of each question that has one. Higher and lower are as the measure says.
        failed: questions without an answer.
        why: the first reason.
        context: characters of the chunks that were given, by question.
    """

    of: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    why: str = ""
    context: dict[str, int] = field(default_factory=dict)

    def take(self, rows: RowsByQuery, cases: Sequence[Case], measures: Sequence[str]) -> None:
        """Take rows. A question without an answer has the worst value of a measure."""
        scores = rows.scores if isinstance(rows, JudgedRows) else {}
        for case in cases:
            name = case.query.query_id
            row = rows[name]
            if isinstance(row, str):
                self.failed.add(name)
                self.why = self.why or row
            else:
                self.context[name] = sum(len(chunk.text) for chunk in row.retrieved_chunks)
            for measure in measures:
                value = value_of(measure, case, row, scores.get(name, {}).get(measure))
                if value is not None:
                    self.of.setdefault(measure, {})[name] = value

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure; None where no question has a value."""
        values = self.of.get(measure, {}).values()
        return sum(values) / len(values) if values else None

    @property
    def mean_context(self) -> float:
        """The mean number of characters that are given; 0 without a row."""
        return sum(self.context.values()) / len(self.context) if self.context else 0.0

    def kept(self, constraint: Gate) -> tuple[bool | None, float | None]:
        """Return whether a constraint holds, and its value; None where it has none."""
        values = sorted(self.of.get(constraint.measure, {}).values())
        if not values:
            return None, None
        share = constraint.quantile
        value = sum(values) / len(values) if share is None else quantile(values, share / 100)
        limit = constraint.right
        assert isinstance(limit, float | int)
        return _holds(constraint.op, value, limit), value

    def breaks(self, constraint: Gate) -> bool:
        """Return whether it is sure that a constraint does not hold: no end of the interval keeps it.

        Sure is 99.9 %: it is asked of many configurations, many times.
        """
        values = list(self.of.get(constraint.measure, {}).values())
        limit, share = constraint.right, constraint.quantile
        assert isinstance(limit, float | int)
        if len(values) < 2:
            return False
        try:
            span = (0.0, 1.0) if measure_named(constraint.measure).unit == "share" else None
            ends = (
                mean_interval(values, span, _SURE) if share is None else quantile_interval(values, share / 100, _SURE)
            )
        except UndefinedError:
            ends = Interval(min(values), max(values))
        return not any(_holds(constraint.op, end, limit) for end in ends)


def broken(constraints: Sequence[Gate], values: Values) -> str:
    """Return the first constraint that values do not keep to, in words; empty where they keep to all."""
    for each in constraints:
        holds, value = values.kept(each)
        if holds is None and values.of:
            return f"{each.what} has no value"
        if holds is False:
            return not_kept(each, value)
    return ""


def not_kept(constraint: Gate, value: float | None) -> str:
    """Return what is said of a constraint that a value does not keep to."""
    return f"{constraint.what} is {value:.4g}, not {constraint.op} {constraint.right:g}"


def _holds(op: str, value: float, limit: float) -> bool:
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[op]


def is_found(name: str) -> bool:
    """Return whether a measure is about what was found alone; others need an answer."""
    measure = measure_named(name)
    return tuple(measure.needs) == ("retrieval",) and measure.unit == "share" and not is_judged(name)


def value_of(name: str, case: Case, row: ExperimentResult | str, judged: Score | None = None) -> float | None:
    """Return the value of a row; the worst where there is no answer, or nothing to measure: no claim to judge.

    ``judged`` is what a judge has said, of a measure that a judge answers.
    """
    measure = measure_named(name)
    if measure.applies(case):
        return None
    if isinstance(row, str):
        return measure.worst
    if judged is None:
        assert isinstance(measure, RowMeasure)
        judged = scored(measure, case, row)
    return measure.worst if judged.value is None else judged.value


def of_group(values: Mapping[str, float], group: Sequence[Case], lower_is_better: bool) -> float:
    """Return the value of a group of questions for a race, from 0 to 1, higher is better: the mean of its questions.

    A group is what was drawn independently, a page or a conversation. So all groups count alike in a race.
    """
    found = [values[case.query.query_id] for case in group if case.query.query_id in values]
    mean = sum(found) / len(found) if found else 0.0
    return 1 - mean if lower_is_better else mean
