"""Scored cases -> per-case values and aggregates of a suite: what gates, summaries and baselines read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rag_harness.errors import SettingsError, unknown
from rag_harness.measures.answers import ANSWER_MEASURES, AnswerMeasure, Needs
from rag_harness.measures.ranking import KNOWN_MEASURES, evaluate, parse_measure
from rag_harness.results.row import ExperimentResult
from rag_harness.stats import mean_or_none

Slice = Mapping[str, str]
_ERRORS = "error_rate"
_CONTEXT = {Needs.PAGES, Needs.EVIDENCE}


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A selected case and what became of it.

    ``slices`` holds query_type and the metadata that is text; ``ranked`` the documents, best first; ``relevant`` their
    relevance by document. ``row`` is None where no answer was asked for (golden) or a crash took it (lost).
    """

    case_id: str
    slices: Slice
    ranked: Sequence[str] = ()
    relevant: Mapping[str, int] = field(default_factory=dict)
    row: ExperimentResult | None = None
    evidence: tuple[str, ...] = ()
    state: Literal["ok", "error", "lost"] = "ok"

    @property
    def has_gold(self) -> bool:
        """Whether any document is relevant."""
        return any(gain > 0 for gain in self.relevant.values())

    def meets(self, needs: Needs) -> bool:
        """Whether a measure with these needs applies."""
        if needs is Needs.ANSWERABLE:
            return self.slices.get("query_type") != "negative"
        return needs is Needs.NOTHING or (self.has_gold if needs is Needs.PAGES else bool(self.evidence))


class SuiteTable:
    """The cases of a suite. An empty slice means all of them.

    Args:
        cases: those that this run was to look at, each once.
        everything: the slices of every case in the data, by case id.
    """

    def __init__(self, cases: Sequence[ScoredCase], everything: Mapping[str, Slice]) -> None:
        self.cases = {case.case_id: case for case in cases}
        self.everything: Mapping[str, Slice] = {**{case.case_id: case.slices for case in cases}, **everything}
        rows = [case.row for case in cases if case.row is not None]
        self._answers = bool(rows)
        # An experiment that never retrieves has no recall, where one that found nothing has a recall of 0.
        self._retrieves = not rows or any(case.ranked for case in cases) or any(map(_retrieved, rows))

    def total_of(self, where: Slice) -> int:
        """Count the cases in the data."""
        return sum(_within(slices, where) for slices in self.everything.values())

    def selected_of(self, where: Slice) -> int:
        """Count the cases that this run was to look at, lost ones included."""
        return len(self._in(where))

    def lost_of(self, where: Slice) -> int:
        """Count the cases that a crash took."""
        return sum(case.state == "lost" for case in self._in(where))

    def values(self, measure: str, where: Slice) -> dict[str, float]:
        """Return the value of each case that the measure applies to; an error and a lost case count the worst.

        Raises:
            SettingsError: there is no such measure.
        """
        if check_measure(measure) in ANSWER_MEASURES:
            scores = {case.case_id: self._answer_value(case, measure) for case in self._in(where)}
            return {case_id: value for case_id, value in scores.items() if value is not None}
        judged = [case for case in self._in(where) if case.has_gold] if self._retrieves else []
        run = {case.case_id: case.ranked if case.state == "ok" else () for case in judged}
        return evaluate(run, {case.case_id: case.relevant for case in judged}, [measure])[measure]

    def aggregate(self, measures: Sequence[str], where: Slice | None = None) -> dict[str, float | None]:
        """Return the mean of each measure; None where no case has a value."""
        return {measure: mean_or_none(self.values(measure, where or {}).values()) for measure in measures}

    def by(self, key: str, measures: Sequence[str]) -> dict[str, dict[str, float | None]]:
        """Return the aggregates of each value of a slice key, sorted, over the selected cases."""
        found = {case.slices[key] for case in self.cases.values() if key in case.slices}
        return {value: self.aggregate(measures, {key: value}) for value in sorted(found)}

    def slices(self) -> dict[str, set[str]]:
        """Return every slice key with the values that cases in the data have."""
        found: dict[str, set[str]] = {}
        for slices in self.everything.values():
            for key, value in slices.items():
                found.setdefault(key, set()).add(value)
        return found

    def _in(self, where: Slice) -> list[ScoredCase]:
        return [case for case in self.cases.values() if _within(self.everything[case.case_id], where)]

    def _answer_value(self, case: ScoredCase, name: str) -> float | None:
        if name == _ERRORS:
            return float(case.state != "ok")
        measure = ANSWER_MEASURES[name]
        if measure.needs in _CONTEXT and not self._retrieves:
            return None
        if case.row is None:
            return measure.worst if self._answers and case.state != "ok" and case.meets(measure.needs) else None
        return _value(measure, case.row, case)


def known_measure(name: str) -> bool:
    """Whether ``name`` is a measure, with its cutoff if it takes one. All of these lie in [0, 1]."""
    try:
        return bool(check_measure(name))
    except SettingsError:
        return False


def check_measure(name: str) -> str:
    """Return ``name`` if it is a measure.

    Raises:
        SettingsError: it is not; says what was probably meant.
    """
    if name in ANSWER_MEASURES:
        return name
    if name.partition("@")[0] not in KNOWN_MEASURES:
        raise SettingsError(unknown("measure", name, [*KNOWN_MEASURES, *ANSWER_MEASURES]))
    parse_measure(name)
    return name


def _value(measure: AnswerMeasure, row: ExperimentResult, case: ScoredCase) -> float | None:
    value = measure.score(row, case.evidence)
    return value if value is None or case.state == "ok" else measure.worst


def _retrieved(row: ExperimentResult) -> bool:
    return row.retrieval_time_ms is not None or bool(row.candidates or row.retrieved_chunks)


def _within(slices: Slice, where: Slice) -> bool:
    return all(slices.get(key) == value for key, value in where.items())
