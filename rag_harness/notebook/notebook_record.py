"""Leaves ``run.json`` and the cases of an evaluation, which reports and comparisons read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.dataset.data import Data
from rag_harness.engine.foreign_text import foreign_text
from rag_harness.engine.interrupted_runs import InterruptedRuns
from rag_harness.errors import DataError, RagHarnessError
from rag_harness.judges.traits import judges_asking
from rag_harness.measures.agents.tool_measures import tools_demanded
from rag_harness.measures.expectation_measures import demands_of
from rag_harness.report.wanted import WantedMeasures
from rag_harness.results.cases import CaseFile, kept, write_cases
from rag_harness.results.manifest import (
    QUERIES,
    RunManifest,
    SkippedLines,
    SuiteRecord,
    commit_of,
    ids_or_all,
    now,
    package_versions,
    read_manifest,
    retrieving_in,
    write_manifest,
)
from rag_harness.results.result_paths import result_path
from rag_harness.results.row import ExperimentResult
from rag_harness.settings import Settings, masked
from rag_harness.types import Case

_FIRST_SKIPPED = 20


@dataclass
class Arrived:
    """What came of an evaluation: ids of questions with a row, and of which an earlier run has made it.

    Attributes:
        not_run: questions that were not asked, with the reason.
        authors: judge, model and revision of each judge.
        judging: tokens and calls of the judge's model.
        set_aside: rows of another fingerprint that were moved to ``previous/``.
        declares: whether the pipeline says whether it retrieves.
        with_context: whether an answer came with a context.
    """

    ids: list[str] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    fingerprints: set[str] = field(default_factory=set)
    is_replayed: bool = False
    not_run: dict[str, str] = field(default_factory=dict)
    authors: dict[tuple[str, str, str], None] = field(default_factory=dict)
    judging: Counter[str] = field(default_factory=Counter)
    set_aside: int = 0
    declares: bool = False
    with_context: bool = False

    def take(self, row: ExperimentResult, is_resumed: bool) -> None:
        """Note a row that is in its file."""
        self.ids.append(row.query_id)
        if is_resumed:
            self.resumed.append(row.query_id)
        self.fingerprints.add(row.fingerprint)
        self.is_replayed |= row.timings_recorded
        self.declares |= row.retrieves is not None
        self.with_context |= bool(row.retrieved_chunks)


@dataclass(frozen=True)
class NotebookRecord:
    """The record of one experiment.

    Args:
        settings: of the evaluation.
        experiment: its name.
        data: its questions.
        cases: all of them, with what their answers owe.
        wanted: what is judged.
        is_ours: whether its contexts come from this package's own parts, which cut them from the pages.
    """

    settings: Settings
    experiment: str
    data: Data
    cases: Sequence[Case]
    wanted: WantedMeasures
    is_ours: bool = False

    def leave(self, selected: Sequence[str], arrived: Arrived) -> RunManifest:
        """Write ``run.json`` and the cases, and return what was written. Other suites to the same data stay in it."""
        output = self.settings.path(self.settings.output)
        record = self._suite(output, selected, arrived)
        name = self.data.name or QUERIES
        digests = {name: self.data.queries_digest}
        earlier = self._earlier(output, name, record)
        write_cases(output, record.cases, map(kept, self.cases))
        manifest = RunManifest(
            date=now(),
            commit=commit_of(self.settings.path(".")),
            packages=package_versions(),
            settings=masked(self.settings),
            digests=digests,
            suites={**earlier, self.experiment: record},
            skipped=self._skipped(name),
        )
        write_manifest(output, manifest)
        if not (record.lost or record.not_run) and (record.is_complete or not record.resumed):
            InterruptedRuns(output).close({self.experiment: frozenset(record.fingerprints)})
        return manifest

    def _suite(self, output: Path, selected: Sequence[str], arrived: Arrived) -> SuiteRecord:
        total, name = len(self.cases), self.experiment
        missing = [each for each in selected if each not in set(arrived.ids)]
        panel = self.settings.panel if arrived.authors else ""
        has_turns = any(case.query.place for case in self.cases)
        record = SuiteRecord(
            data=self.data.name or QUERIES,
            own_cases="" if self.cases is self.data.cases else f"{self.data.name or QUERIES}+{name}",
            file=result_path(output, name).name,
            fingerprints=sorted(arrived.fingerprints),
            made_of=InterruptedRuns(output).made_of(arrived.fingerprints),
            total=total,
            selected=ids_or_all(selected, total),
            not_run=missing,
            resumed=ids_or_all(sorted(arrived.resumed), total),
            judged=list(self.wanted.judged_names(name)),
            authors=[*arrived.authors] if panel else sorted(arrived.authors),
            asks_model=judges_asking(self.settings, [*arrived.authors]),
            panel=panel,
            rubrics=self.wanted.rubric_versions(name),
            demands={**demands_of(self.cases), **tools_demanded(self.cases)},
            judging=dict(arrived.judging),
            pages=self._pages(),
            languages=self._languages(),
            replayed=arrived.is_replayed,
            history="gold" if has_turns else "",
            retrieves=not arrived.declares and (arrived.with_context or name in retrieving_in(output)),
        )
        return record.model_copy(update=self._foreign(output, record))

    def _foreign(self, output: Path, record: SuiteRecord) -> dict[str, Any]:
        try:
            if self.is_ours or not self.data.has_documents:
                return {}
            found = foreign_text(output, record, self.data.documents)
        except (RagHarnessError, OSError):
            return {}  # the documents cannot be read: nothing can be held against them
        return found.fields()

    def _earlier(self, output: Path, data: str, mine: SuiteRecord) -> dict[str, SuiteRecord]:
        """Return the complete suites of earlier runs that were asked the same about the same documents."""
        try:
            before = read_manifest(output)
        except DataError:
            return {}  # the first run, or a file that something else wrote
        if before.digests.get(data) != self.data.queries_digest:
            return {}
        return {
            name: each.model_copy(update={"made": each.made or before.date, "resumed": "all", "is_current": None})
            for name, each in before.suites.items()
            if name != self.experiment
            and each.is_complete
            and each.data == data
            and each.pages in ("", mine.pages)
            and (output / each.file).is_file()
            and CaseFile.place(output, each.cases).is_file()
        }

    def _skipped(self, name: str) -> dict[str, SkippedLines]:
        found = self.data.skipped
        first = list(found[:_FIRST_SKIPPED])
        return {name: SkippedLines(file=self.data.queries_file.name, count=len(found), first=first)} if found else {}

    def _pages(self) -> str:
        try:
            return self.data.pages_digest
        except (RagHarnessError, OSError):
            return ""

    def _languages(self) -> list[str]:
        try:
            return self.data.languages
        except (RagHarnessError, OSError):
            return []
