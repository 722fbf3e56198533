"""Gates on the mean that people would give: the judge's scores, corrected by a saved calibration of that judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rag_harness.errors import DataError
from rag_harness.gates.evidence import by_bounds
from rag_harness.gates.grammar import Gate
from rag_harness.gates.verdict import Interval, Verdict, VerdictState, meets_threshold

if TYPE_CHECKING:
    from rag_harness.judges.calibration.correct import ExperimentScores
    from rag_harness.results.score import Author, ScoreLine


class PeoplesMean(NamedTuple):
    """The estimated mean of people's labels, its interval, and how it was estimated.

    It is the 95 % interval. For a gate that asks for evidence, each end holds by itself with the gate's confidence.
    """

    value: float
    interval: Interval
    said: str


Correct: TypeAlias = Callable[[Gate, Mapping[str, float]], PeoplesMean]
"""Corrects the mean of the cases' values. A DataError says why that is not possible."""


def not_at_hand(gate: Gate, values: Mapping[str, float]) -> PeoplesMean:  # noqa: ARG001 - what a Correct takes
    """Refuse to correct: the caller has no calibrations.

    Raises:
        DataError: always.
    """
    raise DataError("no calibration is at hand here")


def corrections(judges: Path, output: Path) -> Correct:
    """Return a function that corrects scores of the run in ``output`` by the calibrations in ``judges``."""

    def correct(gate: Gate, values: Mapping[str, float]) -> PeoplesMean:
        from rag_harness.judges.calibration.correct import corrected_mean
        from rag_harness.judges.calibration.panel_correction import corrected_panel_mean
        from rag_harness.judges.calibration.saved import read_calibrations
        from rag_harness.results.manifest import read_manifest

        # Each bound of a gate that asks for evidence holds by itself; both together hold with a lower confidence.
        confidence = 0.95 if gate.confidence is None else 2 * gate.confidence / 100 - 1
        if rule := read_manifest(output).suites[gate.suite].panel:
            each = _panel_scores(gate, values, output)
            judged = set.intersection(*(set(scores.values) for scores in each))
            others = [value for case, value in values.items() if case not in judged]
            found = corrected_panel_mean(rule, each, read_calibrations(judges), others, confidence)
        else:
            scores = _scores(gate, values, output)
            others = [value for case, value in values.items() if case not in scores.values]
            found = corrected_mean(scores, read_calibrations(judges), others, confidence)
        return PeoplesMean(found.value, found.interval, found.said)

    return correct


def corrected_verdict(
    gate: Gate, values: Mapping[str, float], threshold: float, correct: Correct, remarks: tuple[bool, str], unit: str
) -> Verdict:
    """Judge the corrected mean. Where it cannot be corrected, the gate fails with the reason."""
    lost, reason = remarks
    try:
        found = correct(replace(gate, confidence=None), values)
        bounds = correct(gate, values).interval if gate.confidence is not None else None
    except DataError as why:
        return Verdict(gate, "failed", reason=f"cannot be calibrated: {why}", n=len(values))
    state: VerdictState = "passed" if meets_threshold(found.value, gate.op, threshold) and not lost else "failed"
    said = ", ".join(part for part in (found.said, reason) if part)
    point = Verdict(gate, state, found.value, threshold, len(values), found.interval, said)
    return point if bounds is None else by_bounds(point, bounds, lost, unit, "more labels would settle it")


def _scores(gate: Gate, values: Mapping[str, float], output: Path) -> ExperimentScores:
    """Return the judge's scores behind ``values``: those of this run, which has one judge."""
    lines = {line.query_id: line for line in _lines_of_run(gate, output) if line.value == values.get(line.query_id)}
    judges = {(line.author, line.version) for line in lines.values()}
    if not judges:
        raise DataError(_nobody(gate))
    if len(judges) > 1:
        raise DataError(f"{len(judges)} judges have scored {gate.measure} of {gate.suite} in this run; use one")
    ((author, version),) = judges
    return _of(gate, version, author, lines)


def _panel_scores(gate: Gate, values: Mapping[str, float], output: Path) -> list[ExperimentScores]:
    """Return each judge's scores of the answers in ``values``, in the order of the panel."""
    from rag_harness.results.manifest import read_manifest
    from rag_harness.results.score import Author

    by_judge: dict[Author, dict[str, ScoreLine]] = {
        Author(*author): {} for author in read_manifest(output).suites[gate.suite].authors
    }
    for line in _lines_of_run(gate, output):
        if line.query_id in values:
            by_judge[line.author][line.query_id] = line
    if not all(by_judge.values()):
        raise DataError(_nobody(gate))
    return [_of(gate, next(iter(lines.values())).version, author, lines) for author, lines in by_judge.items()]


def _nobody(gate: Gate) -> str:
    return f"no judge has scored {gate.measure} of {gate.suite} in this run; only judged measures have one"


def _lines_of_run(gate: Gate, output: Path) -> list[ScoreLine]:
    """Return the lines of the gate's measure that this run's judges have written of this run's rows."""
    from rag_harness.results.manifest import read_manifest
    from rag_harness.results.row import rows_in
    from rag_harness.results.score import SCORES, Author, read_scores, row_digest

    suite = read_manifest(output).suites[gate.suite]
    ours = {Author(*author) for author in suite.authors}
    there = {row.query_id: row_digest(row) for row in rows_in(output / suite.file)}
    version = suite.rubrics.get(gate.measure)
    return [
        line
        for line in read_scores(output / SCORES / suite.file)
        if (line.measure, line.repeat, line.row) == (gate.measure, 0, there.get(line.query_id))
        and line.author in ours
        and version in (None, line.version)
    ]


def _of(gate: Gate, version: int, author: Author, lines: Mapping[str, ScoreLine]) -> ExperimentScores:
    from rag_harness.judges.calibration.correct import ExperimentScores

    found = {case: line.value for case, line in lines.items() if line.value is not None}
    rows = {case: line.row for case, line in lines.items()}
    return ExperimentScores(gate.suite, gate.measure, version, author, found, rows)
