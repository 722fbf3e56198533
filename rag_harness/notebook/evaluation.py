"""What comes back of an evaluation: numbers with n and intervals, a frame of trials, verdicts of gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.notebook.figures_shown import as_html, as_markdown, as_text
from rag_harness.notebook.gate_check import GateCheck, check_gates
from rag_harness.notebook.measure_figures import MeasureFigure, figures_by_measure
from rag_harness.notebook.notebook_record import Arrived
from rag_harness.report.error_lines import error_lines
from rag_harness.report.flat_table import FlatTable
from rag_harness.report.frames import Frame, frame_of
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.trial_records import TrialRecords
from rag_harness.settings import Settings

_NO_VERSION = (
    "The next evaluation asks all of it again, for code cannot be seen whole. version=… says that the answers of a "
    "version stay the same."
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What came of an evaluation. It stays as it is, whatever is evaluated into the same folder later.

    Attributes:
        experiment: its name, in rows and gates.
        output: the folder with its rows, scores and ``run.json``: what a run of pytest leaves, too.
        figures: mean, 95 % interval and n, by measure.
        notes: what to know of the rows: failed trials, questions that were not asked, rows taken over.
    """

    experiment: str
    output: Path
    figures: Mapping[str, MeasureFigure]
    notes: Sequence[str]
    _table: SuiteTable = field(repr=False)
    _trials: FlatTable = field(repr=False)
    _settings: Settings = field(repr=False)
    _not_run: int = 0

    def frame(self, frame: Frame | None = None) -> Any:
        """Return the trials, a row each, with the columns of ``load_results``.

        Args:
            frame: "pandas", "polars", or "records" for a list of dicts; None takes pandas where it is installed, else
                polars.

        Raises:
            PrerequisiteError: the package is not installed; says what to do.
        """
        return frame_of(self._trials, [self.experiment], frame)

    def check(self, *gates: str) -> GateCheck:
        """Return the verdict of each gate: ``result.check("recall@5 >= 0.7", "error_rate <= 0.05 @95%")``.

        A gate that names no experiment is about this one.

        Raises:
            SettingsError: a gate cannot be read, names something unknown, or a measure that was not asked for.
        """
        return check_gates(gates, self.experiment, self._table, self._settings, self._not_run)

    def __repr__(self) -> str:
        return as_text(self._title, self.figures, self.notes)

    def _repr_html_(self) -> str:
        return as_html(self._title, self.figures, self.notes)

    def _repr_markdown_(self) -> str:
        return as_markdown(self._title, self.figures, self.notes)

    @property
    def _title(self) -> str:
        n = self._table.selected_of({})
        return f"{self.experiment}: {n} question{'s' * (n != 1)}"


def evaluation_of(settings: Settings, experiment: str, arrived: Arrived, is_reusable: bool) -> Evaluation:
    """Return what is in the files of an evaluation that has just ended.

    Args:
        settings: of the evaluation.
        experiment: its name.
        arrived: what came.
        is_reusable: whether a later evaluation reuses its rows.
    """
    output = settings.path(settings.output)
    trials = TrialRecords(output, only=experiment)
    table = trials.tables[experiment]
    return Evaluation(
        experiment,
        output,
        figures_by_measure(table, settings.measures),
        [*_notes(table, arrived, settings), *([] if is_reusable else [_NO_VERSION])],
        table,
        FlatTable(trials.columns, list(trials)),
        settings,
        len(arrived.not_run),
    )


def _notes(table: SuiteTable, arrived: Arrived, settings: Settings) -> Iterator[str]:
    if arrived.resumed:
        yield f"{_counted(len(arrived.resumed), 'answer')} of an earlier run reused."
    if arrived.set_aside:
        rows = _counted(arrived.set_aside, "row")
        yield f"{rows} of an earlier evaluation moved to {settings.output}/previous/."
    if arrived.not_run:
        why = next(iter(arrived.not_run.values()))
        yield f"{_counted(len(arrived.not_run), 'question')} not asked: {why}. What is done is kept."
    lines, more = error_lines([table])
    yield from lines
    if more > 0:
        yield f"{_counted(more, 'more trial')} failed: see the column error of frame()."


def _counted(n: int, one: str) -> str:
    return f"{n} {one}{'s' * (n != 1)}"
