"""The failed trials of a run, selected from its output folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.core.json_text import read_json
from rag_harness.core.types import Case
from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.evaluation.measures.judged import FAILED_CATEGORIES
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import RunManifest, of_run
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.runs.gates import Gate, parse_gate
from rag_harness.tables.baseline import asked_measures
from rag_harness.tables.brief import below_gate, is_of_answers, wrong_answers
from rag_harness.tables.reader import read_tables
from rag_harness.tables.suite_table import CaseState, SuiteTable
from rag_harness.tables.summary import SUMMARY_FILE

_FIRST = 1_000
"""Number of an experiment's answers that are read to learn how its answers end."""
_FIRST_CASES = 5_000
_BEST = -2.0
"""Badness of an unjudged answer with exactly the words of the ground truth."""
WORST = 10
"""Number of trials of each experiment to look at, however few of them have failed."""
EXPECTATIONS = "expectations"
"""The measure of what is expected of an answer beside gold."""
AGAINST_TRUTH = ("answer_correctness", "nugget_recall")
"""Judged measures of how much of the ground truth an answer has."""


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A trial that may have failed. ``category`` is empty where it is only among the worst."""

    query_id: str
    category: str = ""
    hri: float | None = None
    judged: Mapping[str, float] = field(default_factory=dict)


def tables_of(output: Path, manifest: RunManifest) -> dict[str, SuiteTable]:
    """Return the tables of a run with the measures that it was judged on.

    Raises:
        DataError: the cases are missing or damaged.
    """

    return read_tables(output, partial(asked_measures, output, manifest))


def suspects(table: SuiteTable, worst: int | None = None, failed: Sequence[Gate] = ()) -> dict[str, FailedCase]:
    """Return the trials of one experiment that may have failed, the worst first.

    These are wrong answers, trials of a failed category, trials on the wrong side of the threshold of a ``failed``
    gate, and the first ``WORST`` of all; with ``worst`` the first so many of all, and no others.
    """
    ordered = [place for place in worst_first(table).tolist() if table.states[place] == CaseState.OK]
    if worst is not None:
        return {table.ids[place]: suspect_at(table, place) for place in ordered[: max(worst, 0)]}
    below = {case for gate in failed if gate.measure in table.columns for case in below_gate(table, gate)}
    wanted = below | wrong_answers(table)
    chosen = [n < WORST or bool(_failed(table, place)) or table.ids[place] in wanted for n, place in enumerate(ordered)]
    return {table.ids[place]: suspect_at(table, place) for place in compress(ordered, chosen)}


def possible_failures(table: SuiteTable) -> list[int]:
    """Return the positions of the answers that may have failed, the worst first.

    They are wrong, or in a failed category, or nothing checks them and they are worse than the ground truth would be.
    """
    correct = _values(table, CORRECT)
    is_open = (correct == 0) | (np.isnan(correct) & (badness_of(table) > _BEST))
    found = [place for place in worst_first(table).tolist() if table.states[place] == CaseState.OK]
    return [place for place in found if is_open[place] or _failed(table, place)]


def failed_gates(output: Path, experiment: str, k: int) -> list[Gate]:
    """Return the gates on a mean of ``experiment`` that failed in the run, from ``summary.json``.

    Causes are looked for in first answers, so a promise over repeats is none of them.
    """
    try:
        said = read_json((output / SUMMARY_FILE).read_bytes()).get("gates", [])
    except (OSError, ValueError, AttributeError):
        return []
    gates = [parse_gate(verdict["gate"], k) for verdict in said if verdict.get("state") == "failed"]
    return [gate for gate in gates if gate.suite == experiment and is_of_answers(gate)]


def worst_first(table: SuiteTable) -> npt.NDArray[np.intp]:
    """Return the positions of all cases: wrong answers, then those that nothing checks, then right ones.

    In each of these the worst are first; equal ones are in the order of their cases.
    """
    return np.lexsort((-badness_of(table), _or(_values(table, CORRECT), 0.5)))


def badness_of(table: SuiteTable) -> npt.NDArray[np.float64]:
    """Return how bad each answer is among equally right ones, shape (cases,): its HRI, else its words, in [-2, -1].

    An answer without an HRI, e.g. a refusal, invents nothing, so it comes after all that have one. The badness of words
    is their distance from those of the ground truth, in [0, 1]; a wrong answer without a ground truth is as bad as
    possible, and one that breaks expectations at least as bad as their share. The retrieved evidence does not count:
    selected by it, every failure would be one of retrieval. A case without an answer has a badness too, which means
    nothing.
    """
    hri = _or(_values(table, "hri"), _values(table, "hri_gold"))
    words = _or(1 - _values(table, "token_f1"), np.asarray(_values(table, CORRECT) == 0, np.float64))
    broken = 1 - _or(_values(table, EXPECTATIONS), 1.0)
    return _or(hri, np.maximum(words, broken) - 2)


def _values(table: SuiteTable, measure: str) -> npt.NDArray[np.float64]:
    column = table.columns.get(measure)
    return column.values if column is not None else np.full(len(table.ids), np.nan)


def _or(values: npt.NDArray[np.float64], others: npt.NDArray[np.float64] | float) -> npt.NDArray[np.float64]:
    return np.where(np.isnan(values), others, values)


def _failed(table: SuiteTable, place: int) -> str:
    """Return the failed category of an answer; empty where its category is not a failure."""
    category = table.categories[place] if table.categories else ""
    return category if category in FAILED_CATEGORIES else ""


def suspect_at(table: SuiteTable, place: int) -> FailedCase:
    """Return the trial of a case, by the position of this, as a suspect."""
    found = {
        name: float(column.values[place])
        for name in ("hri", "hri_gold", *AGAINST_TRUTH)
        if (column := table.columns.get(name)) is not None and not np.isnan(column.values[place])
    }
    judged = {name: found[name] for name in AGAINST_TRUTH if name in found}
    hri = found.get("hri", found.get("hri_gold"))
    return FailedCase(table.ids[place], _failed(table, place), hri, judged)


def suspect(table: SuiteTable, query_id: str) -> FailedCase:
    """Return one trial as a suspect."""
    return suspect_at(table, table.ids.index(query_id))


def first_rows(output: Path, manifest: RunManifest, experiment: str) -> Iterator[ExperimentResult]:
    """Yield the first answers of an experiment in this run, enough to learn how they end."""
    record = manifest.suites[experiment]
    is_of_run = of_run(record)
    answers = (row for row in rows_in(output / record.file) if row.ok and is_of_run(row))
    return islice(answers, _FIRST)


def first_cases(output: Path, manifest: RunManifest, experiment: str) -> Iterator[Case]:
    """Yield the first cases of an experiment's data, enough to search for swapped gold."""
    with closing(CaseFile(output, manifest.suites[experiment].cases)) as cases:
        yield from (cases[n].case for n in range(min(len(cases.ids), _FIRST_CASES)))


def rows_of(
    output: Path, manifest: RunManifest, experiment: str, is_wanted: Callable[[ExperimentResult], bool]
) -> Iterator[tuple[Case, ExperimentResult]]:
    """Yield the wanted rows of an experiment in this run, each with its case as its data have it."""
    record = manifest.suites[experiment]
    is_of_run, cases = of_run(record), CaseFile(output, record.cases)
    try:
        for row in rows_in(output / record.file):
            if row.ok and is_of_run(row) and is_wanted(row):
                yield cases[cases.position[row.query_id]].case, row
    finally:
        cases.close()
