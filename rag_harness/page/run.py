"""A run as the report reads it: its figures, its caveats, its outcome and its badge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError
from rag_harness.core.json_text import read_json
from rag_harness.core.settings.profiles import MOCK, SIMULATED
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.evaluation.measures import ANSWERS, RANKING
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import BegunRun, RunManifest, SuiteRecord, languages_noted, read_begun, read_manifest
from rag_harness.records.row import rows_among
from rag_harness.records.scores import CAUSES, CauseLine, read_causes
from rag_harness.tables.abstention import Abstention, abstentions
from rag_harness.tables.answer_warnings import REST, check_whole, doubts, left_nothing_lines, time_said
from rag_harness.tables.brief import Brief, brief_of
from rag_harness.tables.comparison import Comparison, compare, on_common_data
from rag_harness.tables.gate_states import BAD, STATE_WORDS, GatesState
from rag_harness.tables.pairwise import PairDifference, judged_measures, on_measure, pairwise
from rag_harness.tables.reader import SavedRun, asked_measures, read_tables, saved_run, slices_in
from rag_harness.tables.requested_measures import read_slices
from rag_harness.tables.standings import Standings, standings
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import SUMMARY_FILE, made_up
from rag_harness.tables.wording import counted

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
        name: the name of its folder, which distinguishes it from the report's other runs.
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
        """Return the text of a case's query; empty where the data lack the case.

        The words of a simulated user are only in the row.

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
        """The brief of the run: the facts that a reader needs first.

        Raises:
            DataError: a line of the file of causes is not a cause.
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
            DataError: a line of the file is not a cause.
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


# Computes intervals in threads beside other work: NumPy and zlib release the interpreter lock.


@contextmanager
def intervals_beside(runs: Sequence[Run]) -> Iterator[None]:
    """Compute the interval of every mean of the scorecard while the block runs. At its end they are cached."""
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(_intervals, runs)
        yield
        done.result()


def _intervals(runs: Sequence[Run]) -> None:
    # One measure after another: two experiments that differ only in their answers have equal values of other measures.
    for run in runs[:1]:
        tables = run.selected.values()
        for measure in dict.fromkeys(name for table in tables for name in table.columns):
            for table in tables:
                if table.has(measure):
                    table.interval(measure)


_MADE_UP = {
    SIMULATED: "SIMULATED: a program that knows the gold answers planted faults in them at stated rates. The figures "
    "show what the harness finds, and say nothing of any model.",
    MOCK: "MOCK: placeholders that no question has decided. The figures say nothing of any model.",
}


def caveats(run: Run) -> Iterator[str]:
    """Yield what the figures of a run are not about, a sentence each."""
    yield from _replaced(run)
    yield from _made_up(run)
    yield from _of_earlier_runs(run)
    yield from _other_rows(run)
    yield from _skipped(run)
    yield from (f"{said}." for said in doubts(run.selected))
    yield from _stopped(run)
    yield from languages_noted(run.suites[name] for name in run.selected)


def _replaced(run: Run) -> Iterator[str]:
    """Yield which gates others have replaced: the verdict of all does not include them."""
    said = run.summary.get("replaced") or ()
    yield from (f"{text[:1].upper()}{text[1:]}." for text in said if isinstance(text, str))


def _made_up(run: Run) -> Iterator[str]:
    """Yield which experiments were answered by a simulated model, and which by one that replaces others."""
    answered = {name: table.totals.models for name, table in run.selected.items()}
    for begin, what in _MADE_UP.items():
        found = [name for name, models in answered.items() if any(model.startswith(begin) for model in models)]
        if found:
            yield f"The answers of {', '.join(found)} are {what}"
    if why := run.manifest.settings.get("stands_in"):
        yield f"{why}."


def _of_earlier_runs(run: Run) -> Iterator[str]:
    """Yield the experiments that the last run did not look at, and whether it would give the same rows."""
    for name in run.selected:
        record = run.suites[name]
        if record.made:
            other = ", with other code or settings" if record.is_current is False else ""
            yield f"{name} is of an earlier run, of {time_said(record.made)}{other}; the last one did not look at it."


def _skipped(run: Run) -> Iterator[str]:
    """Yield which questions could not be read and were left out."""
    for lines in run.manifest.skipped.values():
        yield f"{lines.said}, so the figures say nothing of these questions. The first: {'; '.join(lines.first[:1])}"


def _stopped(run: Run) -> Iterator[str]:
    """Yield how many questions were left untested because pytest was stopped."""
    left = sum(len(record.not_run) for record in run.suites.values())
    if run.manifest.stopped and left:
        yield f"{counted(left, 'question was', 'questions were')} left untested: {run.manifest.stopped}."


def _other_rows(run: Run) -> Iterator[str]:
    """Yield that gates were judged before rows were lost, or came back."""
    for name, table in run.selected.items() if run.gates else ():
        judged, lost = run.summary.get(name), table.lost_of({})
        then = judged.get("lost", lost) if isinstance(judged, Mapping) else lost
        if then != lost:
            yield (
                f"The gates were judged on other rows of {name}: {then} trials had no row then, {lost} have none now. "
                "Run pytest again, so that gates and figures are of the same rows."
            )


# How a run came out, in a word and a sentence: the head of a comment, of a page, of a badge, of a commit's status.

SIGNS = {"FAIL": "❌", "UNDECIDED": "❔", "PASS": "✅", "NO VERDICT": "❔"}
"""Stands before each word."""


def run_outcome(brief: Brief, run: Run) -> tuple[str, str]:
    """Return how the run came out as a word, FAIL, UNDECIDED, PASS or NO VERDICT, and what failed and passed.

    What fails the run for pytest fails it here: a gate, a question, another test, a check that could not be made.
    """
    if run.begun is not None:
        return "NO VERDICT", f"the last run left no results; what follows is {REST}, and of this one"
    state, failed = brief.gates, brief.failures.said
    others = _others(state, brief.failures.unchecked)
    gates = _counted(state, others) if state.total else _why_none(run)
    if not failed:
        return state.verdict or "NO VERDICT", gates
    if state.failed:
        return "FAIL", "; ".join([gates, *failed])
    gates = ", ".join([*_none_failed(others), *_part(state)]) if state.total else gates
    return "FAIL", "; ".join(filter(None, [*failed, gates]))


def last_run_lines(run: Run) -> list[str]:
    """Return why the last run into the folder left no results, where it left none; it is said before all else."""
    return left_nothing_lines(run.begun, run.manifest.date) if run.begun is not None else []


def _others(state: GatesState, unchecked: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return the number of gates of each verdict but failed. Those that fail the run by an option are said apart."""
    left = [(state.counts.get(name, 0) - unchecked.get(name, 0), word) for name, word in STATE_WORDS.items()]
    return [(n, word) for n, word in left if n > 0]


def _counted(state: GatesState, others: Sequence[tuple[int, str]]) -> str:
    """Return the number of gates of each verdict, first the number of gates with the verdict of all."""
    bad = sum(state.counts.get(name, 0) for name in BAD)
    said = [*([f"{bad:,} failed"] if state.verdict else []), *(f"{n:,} {word}" for n, word in others)]
    first = {"FAIL": "failed", "UNDECIDED": "undecided", "PASS": "passed", "": "not judged"}[state.verdict]
    ordered = sorted(said, key=lambda each: not each.endswith(f" {first}"))
    n, _, word = ordered[0].partition(" ")
    return ", ".join([f"{n} of {counted(state.total, 'gate')} {word}", *ordered[1:], *_part(state)])


def _none_failed(others: Sequence[tuple[int, str]]) -> list[str]:
    """Return the number of gates of each verdict, where none failed: ``1 gate passed, 2 undecided``."""
    found = sorted(others, key=lambda each: each[1] != "passed")
    return [f"{n:,} {word}" if place else f"{counted(n, 'gate')} {word}" for place, (n, word) in enumerate(found)]


def _part(state: GatesState) -> list[str]:
    return [state.part] if state.part else []


def _why_none(run: Run) -> str:
    if not run.summary:
        return "this folder has no summary.json of the run, which keeps the verdicts"
    return "no gate is set (`--rag-gate`, or `rag_gate` in the ini file)"


_COLORS = {"FAIL": "red", "UNDECIDED": "yellow", "PASS": "brightgreen", "NO VERDICT": "lightgrey"}


def badge_of(run: Run) -> str:
    """Return JSON of a badge, by shields.io's schema of endpoints (https://shields.io/badges/endpoint-badge).

    It counts gates and failed questions, and shows no figure of a measure, so that it is true at every number of
    cases. What is simulated or a placeholder is called so.
    """
    word, said = _verdict(run)
    shown = "no verdict" if word == "NO VERDICT" else said
    badge = {"schemaVersion": 1, "label": "RAG gates", "message": shown, "color": _COLORS[word]}
    return json.dumps(badge, ensure_ascii=False, indent=1) + "\n"


def status_by_gates(run: Run, has_succeeded: bool) -> tuple[str, str]:
    """Return state and description of the commit's status.

    Args:
        run: the run.
        has_succeeded: whether the suite ended with status 0. A verdict of the gates says nothing of its other tests,
            and whether an undecided gate stops a release is an option of the suite (``--rag-undecided``).
    """
    word, said = _verdict(run)
    if word == "NO VERDICT":
        return "error", f"{word}: {said}"
    if word == "FAIL" or has_succeeded:
        return "failure" if word == "FAIL" else "success", f"{word}: {said}"
    return "failure", f"The suite failed. {word}: {said}"


def _verdict(run: Run) -> tuple[str, str]:
    word, said = run_outcome(run.brief, run)
    words = dict.fromkeys(filter(None, map(made_up, run.brief.answered.authors)))
    return word, said.replace("`", "") + "".join(f" ({each})" for each in words)
