"""A run as the report reads it, from the files of an output folder only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.files.json_text import read_json
from rag_harness.measures.named import ANSWERS, RANKING
from rag_harness.report.abstention import Abstention, abstentions
from rag_harness.report.asked_measures import asked_measures, slices_in
from rag_harness.report.baseline import SavedRun, saved_run
from rag_harness.report.brief import Brief, brief_of
from rag_harness.report.comparison import Comparison, compare, on_common_data
from rag_harness.report.left_nothing import check_whole
from rag_harness.report.pairwise import PairDifference, judged_measures, on_measure, pairwise
from rag_harness.report.slices_asked import read_slices
from rag_harness.report.standing import Standings
from rag_harness.report.standings import standings
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary_file import SUMMARY_FILE
from rag_harness.report.tables import read_tables
from rag_harness.results.begun_run import BegunRun, read_begun
from rag_harness.results.cases import CaseFile
from rag_harness.results.causes import CAUSES, CauseLine, read_causes
from rag_harness.results.manifest import RunManifest, SuiteRecord, read_manifest
from rag_harness.results.row import rows_among
from rag_harness.types import GOLDEN, TrialId

DOCUMENTS = "documents"
"""The digest of all documents, which older runs did not keep."""
UNJUDGED = (
    "recall@5",
    "mrr@10",
    "evidence_recall",
    "expectations",
    "token_f1",
    "citation_recall",
    "false_abstention_rate",
    "error_rate",
)
"""Measures that experiments are compared on without a judge; users' own measures follow."""


@dataclass(frozen=True)
class Run:
    """A run that was read.

    Attributes:
        name: name that distinguishes it from the report's other runs: that of its folder.
        output: the folder.
        manifest: the run's manifest.
        tables: tables of its suites, by name.
        summary: content of ``summary.json``; empty where it is of another run.
        is_alone: whether the report is about this run only, so that ids of trials need not name it.
        begun: a later run into the same folder, which left no results; None where this one is the last.
    """

    name: str
    output: Path
    manifest: RunManifest
    tables: Mapping[str, SuiteTable]
    summary: Mapping[str, Any]
    is_alone: bool = True
    begun: BegunRun | None = None

    def address(self, trial: TrialId | str) -> str:
        """Return the id of a trial in the report."""
        return str(trial) if self.is_alone else f"{self.name}/{trial}"

    def query_of(self, experiment: str, case: str) -> str:
        """Return the text of a case's query; empty where the data have no such case.

        What a simulated user said stands in the row alone.

        Raises:
            DataError: the cases are missing or damaged.
        """
        cases = self.cases_of(experiment)
        position = cases.position.get(case)
        try:
            found = cases[position].case if position is not None else None
            if found is None or found.has_text:
                return found.query.text if found else ""
            rows = rows_among(self.output / self.suites[experiment].file, {case})
            return next((row.query for row in rows), found.query.text)
        finally:
            cases.close()

    def cases_of(self, experiment: str) -> CaseFile:
        """Return the cases of an experiment. A file is indexed once. Close it after use.

        Raises:
            DataError: the cases are missing or damaged.
        """
        name = self.suites[experiment].cases
        if name not in self._case_files:
            self._case_files[name] = CaseFile(self.output, name)
        return self._case_files[name]

    @cached_property
    def _case_files(self) -> dict[str, CaseFile]:
        return {}

    def compared_with(self, before: Run) -> Comparison:
        """Return what changed from a run before to this one. A pair is compared once.

        Raises:
            DataError: queries, gold or documents differ, or the last run into a folder left no results; says how.
        """
        for run in (before, self):
            check_whole(run.output)
        if before.output not in self._comparisons:
            self._comparisons[before.output] = compare(*on_common_data(self.saved, before.saved))
        return self._comparisons[before.output]

    @property
    def saved(self) -> SavedRun:
        """The run as a baseline, for comparison with another."""
        return saved_run(self.manifest, self.tables)

    @cached_property
    def _comparisons(self) -> dict[Path, Comparison]:
        return {}

    @property
    def experiments(self) -> dict[str, SuiteTable]:
        """The tables of experiments with selected cases, by name."""
        return {name: table for name, table in self.selected.items() if name != GOLDEN}

    @property
    def selected(self) -> dict[str, SuiteTable]:
        """The tables of all suites with selected cases, by name, ``golden`` too."""
        return {name: table for name, table in self.tables.items() if table.selected_of({})}

    @property
    def suites(self) -> Mapping[str, SuiteRecord]:
        """The manifest's record of each suite."""
        return self.manifest.suites

    @property
    def gates(self) -> Sequence[Mapping[str, Any]]:
        """The verdicts of the gates, as in ``summary.json``. Files of older releases lack the unjudged ones."""
        return [gate for gate in self.summary.get("gates", ()) if gate.get("state") != "silent"]

    @cached_property
    def brief(self) -> Brief:
        """What a reader has to know first.

        Raises:
            DataError: a line of the file of causes is no cause.
        """
        unchecked = self.summary.get("unchecked") or {}
        return brief_of(self.tables, self.manifest, self.gates, list(self.causes.values()), unchecked)

    @cached_property
    def pairwise(self) -> Sequence[PairDifference]:
        """Each pair of experiments on each judged measure."""
        return pairwise(self.tables, self.suites)

    @cached_property
    def unjudged(self) -> Sequence[PairDifference]:
        """Each pair of experiments on each measure without a judge; p-values are adjusted over a measure's pairs."""
        tables = list(self.experiments.values())
        known = dict.fromkeys([*UNJUDGED, *(name for table in tables for name in table.columns)])
        left_out = {*RANKING, *ANSWERS, *(name for table in tables for name in judged_measures(table))} - {*UNJUDGED}
        wanted = [measure for measure in known if measure not in left_out]
        return [cell for measure in wanted for cell in on_measure(self.tables, self.suites, measure)]

    @cached_property
    def standings(self) -> Standings:
        """The standings of experiments on the slices that the run was asked for."""
        try:
            asked = read_slices(slices_in(self.manifest.settings), int(self.manifest.settings.get("k") or 10))
        except SettingsError:  # the measure is not registered here
            return Standings()
        return standings(self.experiments, self.suites, asked) if asked else Standings()

    @cached_property
    def abstentions(self) -> Sequence[Abstention]:
        """Confidence against rightness, for each experiment with a stated confidence."""
        return abstentions(self.tables)

    @property
    def has_causes(self) -> bool:
        """Whether the causes of failures were looked for."""
        return (self.output / CAUSES).is_file()

    @cached_property
    def causes(self) -> Mapping[TrialId, CauseLine]:
        """The causes of failures of this run's rows, the worst of each experiment first.

        Raises:
            DataError: a line of the file is no cause.
        """
        known = {name: set(record.fingerprints) for name, record in self.suites.items()}
        lines = read_causes(self.output)
        return {line.trial: line for line in lines if line.fingerprint in known.get(line.experiment, ())}


def read_run(
    output: Path, name: str = "", tables: Mapping[str, SuiteTable] | None = None, is_alone: bool = True
) -> Run:
    """Read the run in ``output``; ``tables`` are given where they are already read.

    Raises:
        DataError: ``run.json`` or the cases are missing or damaged.
    """
    manifest = read_manifest(output)
    found = tables if tables is not None else read_tables(output, partial(asked_measures, output, manifest))
    named = name or output.absolute().name
    return Run(named, output, manifest, found, _summary(output, manifest), is_alone, read_begun(output))


def _summary(output: Path, manifest: RunManifest) -> Mapping[str, Any]:
    """Return the content of the file; empty where it is damaged or of another run."""
    try:
        said = read_json((output / SUMMARY_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) and said.get("run") in (None, manifest.date) else {}
