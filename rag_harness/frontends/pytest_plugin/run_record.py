"""The record of a run beside its rows: its mark, manifest, digests, tables, and suites of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin.options import command_said, output_asked
from rag_harness.frontends.pytest_plugin.terminal import has_failed_to_collect, stopped_said
from rag_harness.frontends.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.core.concurrency import Lazy
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case
    from rag_harness.data.datasets import Data
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.recorder import Recorder, TableMeasures
    from rag_harness.frontends.pytest_plugin.session import RagSession, RunCases
    from rag_harness.records.cases import StoredCase
    from rag_harness.records.golden_result import RetrievalCase, RetrievalResult
    from rag_harness.records.manifest import EndsAgain, RunManifest, SkippedLines, SuiteRecord
    from rag_harness.tables.abstention import Abstention
    from rag_harness.tables.conversations import Played
    from rag_harness.tables.noise import Noise
    from rag_harness.tables.pairwise import PairDifference
    from rag_harness.tables.panels import PanelFinding
    from rag_harness.tables.standings import Standings
    from rag_harness.tables.suite_table import SuiteTable


class RunData:
    """The data of a run by the names that ``run.json`` gives them: ``queries``, ``golden``, or that of named data."""

    def __init__(self, settings: Lazy[Settings], cases: RunCases) -> None:
        self._settings, self._cases = settings, cases

    def name_of(self, suite: str) -> str:
        """Return the name of the data that a suite is asked about."""
        from rag_harness.records.manifest import PLAYED, QUERIES

        if suite == GOLDEN:
            return GOLDEN
        return (self._cases.data_of(suite) or QUERIES) + PLAYED * self._cases.is_played(suite)

    def own_cases_of(self, suite: str) -> str:
        """Return the name of a suite's own file of cases; empty if its answers owe what all to the same data owe."""
        is_own = suite != GOLDEN and not self._cases.is_like_its_data(suite)
        return f"{self.name_of(suite)}+{suite}" if is_own else ""

    def of(self, name: str) -> Data:
        """Return the data of that name; golden entries use the run's own data."""
        from rag_harness.records.manifest import PLAYED, QUERIES

        plain = name.removesuffix(PLAYED)
        return self._cases.data.get("" if plain in (QUERIES, GOLDEN) else plain)

    def cases(self, name: str) -> list[Case]:
        """Return the cases of the data of that name."""
        from rag_harness.records.manifest import PLAYED

        return self.of(name).scenarios if name.endswith(PLAYED) else self.of(name).cases

    def digests(self, names: Collection[str]) -> dict[str, str]:
        """Return the digests of the data that were used. Two runs are comparable if they share them."""
        found = {name: self.digest(name) for name in names}
        if self._settings.get().save or self._settings.get().compare:
            found |= self._documents(names)
        return found

    def digest(self, name: str) -> str:
        """Return the digest of a file of questions or golden entries.

        Raises:
            RagHarnessError, OSError: the file cannot be read.
        """
        from rag_harness.core.files import file_digest

        if name != GOLDEN:
            return self.of(name).queries_digest
        settings = self._settings.get()
        golden = settings.path(settings.golden)
        return settings.dataset or (file_digest(golden) if golden.is_file() else "")

    def skipped(self, names: Iterable[str]) -> dict[str, SkippedLines]:
        """Return the lines that were left out of each file of questions, where there are any."""
        from rag_harness.records.manifest import SkippedLines

        found = {name: self.of(name) for name in sorted(names) if name != GOLDEN}
        return {name: SkippedLines.of(data.queries_file, data.skipped) for name, data in found.items() if data.skipped}

    def pages(self, name: str) -> str:
        """Return the digest of the documents that questions are about; empty if they cannot be read."""
        from rag_harness.core.errors import RagHarnessError

        try:
            return self.of(name).pages_digest
        except (RagHarnessError, OSError):
            return ""

    def languages(self, name: str) -> list[str]:
        """Return what to know about the languages of the documents; nothing if they cannot be read."""
        from rag_harness.core.errors import RagHarnessError

        try:
            return self.of(name).languages
        except (RagHarnessError, OSError):
            return []

    def _documents(self, names: Collection[str]) -> dict[str, str]:
        """Return the digests of the documents. Those of named data have its name as key."""
        from rag_harness.records.manifest import QUERIES

        own = {GOLDEN, QUERIES}
        return {"documents" if name in own else f"documents of {name}": self.of(name).digest for name in names}


class RunRecord:
    """The record of a run, in the process that writes. After ``leave``, ``RunFindings`` reads its files."""

    def __init__(self, session: RagSession, arrivals: Recorder, measures: TableMeasures) -> None:
        self._session, self._arrivals, self._measures = session, arrivals, measures
        self._data = RunData(session.lazy_settings, session.cases)
        self._selected: dict[TrialId, None] = {}
        self._left = False
        self._case_digests: dict[str, str] = {}
        self.before_reading: list[Callable[[], None]] = []
        """Called when all rows are in their files."""

    def note(self, selected: Iterable[TrialId]) -> bool:
        """Note the trials and golden entries that were selected, and return whether there are any."""
        self._selected |= dict.fromkeys(selected)
        return bool(self._selected)

    def leave(self, interrupted: bool = False) -> None:
        """Write ``run.json`` and the cases, once. Trials that did not come before an interrupt count as not run."""
        if self._left:
            return
        try:
            self._write(interrupted)
        except OSError as error:
            self._arrivals.broken = self._arrivals.broken or error
            raise
        self._left = True

    def _write(self, interrupted: bool) -> None:
        """Write all files, and free the memory of what they say."""
        from rag_harness.records.cases import write_cases
        from rag_harness.records.manifest import write_manifest
        from rag_harness.runs.journal import InterruptedRuns

        self._arrivals.close_files()
        for suite in self._session.snapshots.write(self._session.is_whole):
            self._session.cases.forget(suite)
            self._case_digests.pop(self._data.own_cases_of(suite), None)
        suites = self._suites(interrupted)
        for step in self.before_reading:
            step()
        files = {record.cases: name for name, record in suites.items()}
        for file in sorted(files.keys() - self._case_digests.keys()):
            write_cases(self._session.output, file, self._cases(files[file]))
        earlier = left_by_earlier_runs(self._session, self._data, suites, self._measures.wanted)
        write_manifest(self._session.output, self._manifest({**earlier, **suites}))
        # A part of a run may have taken over rows of an interrupted run. The other rows are left to the next part.
        ended = {
            name: each
            for name, each in suites.items()
            if not (each.lost or each.not_run) and (each.is_complete or not each.resumed)
        }
        finished = {name: frozenset(each.fingerprints) for name, each in ended.items()}
        InterruptedRuns(self._session.output).close(finished)
        self._selected.clear()

    def keep_cases(self, suite: str) -> str:
        """Write the cases of a suite before the run has ended, and return the digest of their file.

        Raises:
            OSError: the file cannot be written.
        """
        from rag_harness.core.files import file_sha256
        from rag_harness.records.cases import CaseFile, write_cases

        file = self._data.own_cases_of(suite) or self._data.name_of(suite)
        if file not in self._case_digests:
            write_cases(self.output, file, self._cases(suite))
            self._case_digests[file] = file_sha256(CaseFile.place(self.output, file))
        return self._case_digests[file]

    @property
    def is_there(self) -> bool:
        """Whether the files are written, with all that became of the run."""
        return self._left

    @property
    def output(self) -> Path:
        """The folder of the run's files."""
        return self._session.output

    def _trials(self) -> dict[str, dict[str, None]]:
        """Return the selected cases by suite. A case whose row came was selected."""
        found: dict[str, dict[str, None]] = {}
        for trial in self._selected:
            found.setdefault(trial.experiment, {})[trial.query_id] = None
        for name, arrived in self._arrivals.arrived.items():
            known = found.setdefault(name, {})
            known |= {case_id: None for case_id in sorted(arrived) if case_id not in known}
        return found

    @cached_property
    def _golden_ids(self) -> Sequence[str] | None:
        try:
            return self._session.golden.every_id
        except PrerequisiteError:
            return None

    def _suites(self, interrupted: bool) -> dict[str, SuiteRecord]:
        found = {name: self._suite(name, list(ids), interrupted) for name, ids in self._trials().items()}
        return {name: self._with_foreign_text(name, suite) for name, suite in found.items()}

    def _with_foreign_text(self, name: str, suite: SuiteRecord) -> SuiteRecord:
        """Return a record that says how many contexts have other texts than their pages, or name none.

        Those of our own parts have the texts of their pages.
        """
        if self._is_ours(name):
            return suite
        from rag_harness.core.errors import RagHarnessError
        from rag_harness.tables.answer_warnings import foreign_text

        try:
            data = self._data.of(suite.data)
            if not data.has_documents:
                return suite
            found = foreign_text(self._session.output, suite, data.documents)
        except (RagHarnessError, OSError):
            return suite  # the documents cannot be read: nothing can be compared with them
        return suite.model_copy(update=found.fields())

    def _is_ours(self, name: str) -> bool:
        """Whether the contexts of a suite come from this package's own parts, which cut them from the pages."""
        from rag_harness.core.errors import RagHarnessError
        from rag_harness.core.registry import is_own_code
        from rag_harness.runs.golden_suite import RETRIEVERS

        session = self._session
        asked = session.settings.retriever if name == GOLDEN else name
        if asked in RETRIEVERS and name == GOLDEN:
            return True
        try:
            experiment = session.experiments.known(asked)
        except RagHarnessError:
            return False
        if experiment is None or is_own_code(experiment.code):
            return False
        from rag_harness.tables.answer_warnings import cuts_pages

        return cuts_pages(experiment, session.settings)

    def _asking(self, authors: Collection[tuple[str, str, str]]) -> dict[str, bool]:
        """Return which judges of an experiment ask a model."""
        if not authors:
            return {}
        from rag_harness.evaluation.judges.traits import judges_asking

        return judges_asking(self._session.settings, [*authors])

    def _suite(self, name: str, selected: list[str], interrupted: bool) -> SuiteRecord:
        from rag_harness.evaluation.measures.agents import tools_demanded
        from rag_harness.evaluation.measures.expectations import demands_of
        from rag_harness.pipelines.experiments import result_path
        from rag_harness.records.manifest import SuiteRecord, ids_or_all
        from rag_harness.runs.journal import InterruptedRuns

        arrivals, total = self._arrivals, self._total(name, selected)
        skipped = arrivals.skipped_of(name, selected)
        selected = [case_id for case_id in selected if case_id not in skipped]
        missing = [case_id for case_id in selected if case_id not in arrivals.arrived.get(name, ())]
        said = {case_id: arrivals.ended.get(TrialId(name, case_id), "") for case_id in missing}
        ended = {case_id: why for case_id, why in said.items() if why}
        asked_for = [case_id for case_id in missing if case_id not in ended]
        settled = asked_for if name in arrivals.settled else []
        others = [] if settled else asked_for
        not_run = [
            case_id
            for case_id in others
            if interrupted or (trial := TrialId(name, case_id)) in arrivals.not_run or not self._has_ended(trial)
        ]
        answers = 1 if name == GOLDEN else max(self._session.settings.repeats, 1)
        authors = arrivals.authors.get(name, {})
        panel = self._session.settings.panel if authors else ""
        cases = () if name == GOLDEN else self._session.cases.all_of(name)
        return SuiteRecord(
            asks_model=self._asking(authors),
            data=self._data.name_of(name),
            file=result_path(self._session.output, name).name,
            fingerprints=sorted(arrivals.fingerprints.get(name, ())),
            made_of=InterruptedRuns(self._session.output).made_of(arrivals.fingerprints.get(name, ())),
            total=total,
            selected=ids_or_all(selected, total),
            lost=sorted({*others} - {*not_run}),
            not_run=not_run,
            settled=sorted(settled),
            failed=sorted(arrivals.failed.get(name, ())),
            skipped=skipped,
            ended=ended,
            taken_out=self._taken_out(name),
            again=self._again(name, answers),
            resumed=ids_or_all(sorted(arrivals.resumed.get(name, ())), total),
            judged=list(self._session.wanted.judged_names(name)),
            authors=[*authors] if panel else sorted(authors),
            panel=panel,
            rubrics={} if name == GOLDEN else self._session.wanted.rubric_versions(name),
            demands={**demands_of(cases), **tools_demanded(cases)},
            own_cases=self._data.own_cases_of(name),
            replayed=name in arrivals.replayed,
            pages=self._data.pages(self._data.name_of(name)),
            history="" if name == GOLDEN else self._session.histories.said_of(name),
            user=self._user(name),
            languages=self._data.languages(self._data.name_of(name)),
            judging=dict(arrivals.judging.get(name, {})),
            answers=answers,
            computes=answers > 1 and self._computes(name),
            retrieves=self._retrieves(name),
        )

    def _retrieves(self, name: str) -> bool:
        """Whether an experiment that says nothing of retrieval counts as one that retrieves."""
        arrivals = self._arrivals
        if name == GOLDEN or name in arrivals.declaring or name not in arrivals.arrived:
            return False
        return name in arrivals.with_context or name in self._retrieved_before or name in self._asked_of_contexts

    @cached_property
    def _retrieved_before(self) -> frozenset[str]:
        from rag_harness.records.manifest import retrieving_in

        return retrieving_in(self._session.output)

    @cached_property
    def _asked_of_contexts(self) -> frozenset[str]:
        """The experiments that a gate asks about what they retrieve."""
        from rag_harness.runs.gates.configuration import asked_of_contexts, gates_set

        settings = self._session.settings
        return asked_of_contexts(gates_set(settings), settings.k)

    def _has_ended(self, trial: TrialId) -> bool:
        """Whether the test of a trial without a row has begun: if pytest was stopped before it, nothing was lost."""
        return trial in self._arrivals.silent or not stopped_said(self._session.config)

    def _taken_out(self, name: str) -> dict[str, str]:
        return {talk: why for (suite, talk), why in sorted(self._arrivals.taken_out.items()) if suite == name}

    def _again(self, name: str, answers: int) -> dict[int, EndsAgain]:
        """Return how simulated users have ended the repeats of their conversations."""
        from rag_harness.records.manifest import EndsAgain, repeat_name

        if not self._user(name):
            return {}
        found = {}
        for repeat in range(2, answers + 1):
            derived = repeat_name(name, repeat)
            ended = {each.query_id: why for each, why in self._arrivals.ended.items() if each.experiment == derived}
            found[repeat] = EndsAgain(ended=ended, taken_out=self._taken_out(derived))
        return found

    def _user(self, name: str) -> str:
        from rag_harness.pipelines.simulated_user import played_by

        return played_by(self._session.settings) if self._session.cases.is_played(name) else ""

    def _computes(self, experiment: str) -> bool:
        from rag_harness.runs.engine import computes_its_answers

        return computes_its_answers(experiment, self._session.settings)

    def _total(self, name: str, selected: list[str]) -> int:

        if name != GOLDEN:
            return len(self._session.cases.all_of(name))
        return len(self._golden_ids) if self._golden_ids is not None else len(selected)

    def _cases(self, suite: str) -> Iterable[StoredCase]:
        from rag_harness.records.cases import stored_case as kept

        return self._golden_cases() if suite == GOLDEN else map(kept, self._session.cases.all_of(suite))

    def _golden_cases(self) -> list[StoredCase]:
        from rag_harness.records.golden_result import RetrievalCase

        try:
            return [_kept(case) for case in self._session.golden.cases.values()]
        except PrerequisiteError:
            # The first test has said why. All entries are lost.
            ids = self._golden_ids if self._golden_ids is not None else self._trials().get(GOLDEN, {})
            return [_kept(RetrievalCase(case_id, "", {case_id: 1})) for case_id in ids]

    def _manifest(self, suites: Mapping[str, SuiteRecord]) -> RunManifest:
        from rag_harness.core.files import now
        from rag_harness.core.settings import masked
        from rag_harness.records.manifest import RunManifest, commit_of, package_versions

        settings = self._session.settings
        return RunManifest(
            date=now(),
            commit=commit_of(settings.path(".")),
            packages=package_versions(),
            settings=masked(settings),
            digests=self._data.digests({record.data for record in suites.values()}),
            suites=dict(suites),
            skipped=self._data.skipped({record.data for record in suites.values()}),
            other_failures=len(self._arrivals.other_failures),
            stopped=stopped_said(self._session.config) if any(each.not_run for each in suites.values()) else "",
        )


def _kept(entry: RetrievalCase) -> StoredCase:
    from rag_harness.records.cases import StoredCase as KeptCase

    expected = entry.expected or tuple(entry.relevant)
    return KeptCase(entry.case, entry.slices, expected, entry.justification, entry.passage)


class RunFindings:
    """The findings of a run, in the process that writes. The first question has the record written.

    Args:
        session: state of the run.
        recorder: knows why files could not be written.
        record: writes what is read.
        measures: of the tables.
    """

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, measures: TableMeasures) -> None:
        self._session, self._recorder, self._record, self.measures = session, recorder, record, measures
        self.more: dict[str, Any] = {}
        """What other parts add to ``summary.json``, by its key."""

    @property
    def output(self) -> Path:
        """The folder of the run's files."""
        return self._session.output

    @property
    def is_there(self) -> bool:
        """Whether the files of the run are complete."""
        return self._record.is_there

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read. If a file could not be written there is not, and a message says so."""
        if self._recorder.broken is None:
            with suppress(OSError):
                self._record.leave(interrupted=True)
        if self._recorder.broken is not None:
            self._recorder.tell_once()
        return self._recorder.broken is None

    @cached_property
    def manifest(self) -> RunManifest:
        """The manifest of the run, read from its file."""
        from rag_harness.records.manifest import read_manifest

        self._record.leave(interrupted=True)
        found = read_manifest(self.output)
        return found.model_copy(update={"suites": {n: each for n, each in found.suites.items() if self._counts(each)}})

    def _counts(self, suite: SuiteRecord) -> bool:
        """Whether a suite belongs to this run: looked at now, or left by an earlier run with the rows of today."""
        return not suite.made or bool(suite.is_current)

    @cached_property
    def tables(self) -> Mapping[str, SuiteTable]:
        """The table of every suite with a selected case."""
        from rag_harness.tables.reader import read_tables

        self._record.leave(interrupted=True)
        return read_tables(self.output, self.measures.of, self.manifest)

    def has_settled(self, suite: str) -> bool:
        """Whether some cases of a suite were not asked because its gates were settled."""
        record = self.manifest.suites.get(suite)
        return record is not None and bool(record.settled)

    @cached_property
    def pairwise(self) -> Sequence[PairDifference]:
        """The comparison of each pair of experiments on each judged measure."""
        from rag_harness.tables.pairwise import pairwise

        suites = self.manifest.suites
        return pairwise(self.tables, suites) if any(record.authors for record in suites.values()) else []

    @cached_property
    def standings(self) -> Standings:
        """Which experiment wins on the slices that were asked for."""
        from rag_harness.tables.requested_measures import read_slices
        from rag_harness.tables.standings import Standings

        settings = self._session.settings
        if not settings.slices:
            return Standings()
        from rag_harness.tables.standings import standings

        return standings(self.tables, self.manifest.suites, read_slices(settings.slices, settings.k))

    @property
    def found(self) -> dict[str, Any]:
        """The sections that ``summary.json`` has beside aggregates and gates."""
        pairs = {"pairwise": [cell.as_json() for cell in self.pairwise]} if self.pairwise else {}
        sure = {"abstention": {each.experiment: each.as_json() for each in self.abstentions}}
        noise = {"noise": {each.experiment: each.as_json() for each in self.noises}} if self.noises else {}
        slices = {"slices": [each.as_json() for each in self.standings.found]} if self.standings.found else {}
        lines = {name: each.model_dump() for name, each in self.manifest.skipped.items()}
        skipped = {"skipped": lines} if lines else {}
        panels = {"panels": [each.as_json() for each in self.panels]} if self.panels else {}
        played = {"played": {name: each.as_json() for name, each in self.played.items()}} if self.played else {}
        return pairs | panels | skipped | played | (sure if self.abstentions else {}) | noise | slices | self.more

    @cached_property
    def played(self) -> Mapping[str, Played]:
        """The outcomes of the conversations that simulated users play, by experiment."""
        if not any(record.user for record in self.manifest.suites.values()):
            return {}
        from rag_harness.tables.conversations import played_of

        return played_of(self.output, self.manifest, self.tables)

    @cached_property
    def panels(self) -> list[PanelFinding]:
        """How far the judges of a panel agree, and what they are worth by people's labels."""
        if not any(record.panel for record in self.manifest.suites.values()):
            return []
        from rag_harness.tables.panels import panel_findings

        settings = self._session.settings
        return panel_findings(self.tables, settings.folder("judges"))

    @cached_property
    def noises(self) -> list[Noise]:
        """Where the noise of each experiment is, if --rag-repeats was given."""
        if not self._session.settings.repeats:
            return []
        from rag_harness.tables.noise import noises

        return noises(self.output, self.manifest, self.tables, self._session.settings)

    @cached_property
    def abstentions(self) -> list[Abstention]:
        """How each experiment's stated confidence relates to being right; only experiments that state one."""
        from rag_harness.tables.abstention import abstentions

        return abstentions(self.tables)

    @cached_property
    def retrievals(self) -> list[RetrievalResult]:
        """The hits for each golden entry."""
        from rag_harness.tables.golden_suite import read_retrievals

        return list(read_retrievals(self.output, self.manifest))


# Suites that earlier runs left in the output folder. They may be judged together with this run's suites.


def left_by_earlier_runs(
    session: RagSession, data: RunData, looked_at: Mapping[str, SuiteRecord], wanted: Collection[str]
) -> dict[str, SuiteRecord]:
    """Return the complete suites of earlier runs whose data have not changed since.

    Args:
        session: state of the run.
        data: of the run.
        looked_at: suites of this run; they are left out.
        wanted: suites that gates name; for these it is checked whether this run would make the same rows.
    """
    from rag_harness.core.errors import DataError
    from rag_harness.records.cases import CaseFile
    from rag_harness.records.manifest import read_manifest

    output = session.output
    try:
        before = read_manifest(output)
    except DataError:
        return {}  # the first run, or a file that something else wrote
    found: dict[str, SuiteRecord] = {}
    for name, record in before.suites.items():
        files = output / record.file, CaseFile.place(output, record.cases)
        is_there = name not in looked_at and record.is_complete and all(file.is_file() for file in files)
        if is_there and _is_about_the_same(record, before.digests.get(record.data), data):
            made = record.made or before.date
            is_current = _is_current(session, name, record, made) if name in wanted else None
            found[name] = record.model_copy(update={"made": made, "resumed": "all", "is_current": is_current})
    return {name: _owing_now(record, looked_at) for name, record in found.items()}


def _owing_now(record: SuiteRecord, looked_at: Mapping[str, SuiteRecord]) -> SuiteRecord:
    """Return a suite with today's demands on its answers: this run has rewritten the cases that it shares."""
    of_now = next((each for each in looked_at.values() if each.cases == record.cases), record)
    return record.model_copy(update={"demands": of_now.demands})


def _is_about_the_same(record: SuiteRecord, digest: str | None, data: RunData) -> bool:
    from rag_harness.core.errors import RagHarnessError

    try:
        # This run may lack the data. Data that cannot be read count as changed.
        return digest == data.digest(record.data) and record.pages in ("", data.pages(record.data))
    except (RagHarnessError, OSError):
        return False


def _is_current(session: RagSession, name: str, record: SuiteRecord, made: str) -> bool | None:
    """Whether this run would resume all rows of a suite; None if that cannot be known."""
    from rag_harness.core.errors import RagHarnessError
    from rag_harness.records.manifest import seconds_of

    try:
        experiment = session.experiments.known(name)
        if experiment is None or session.identities.reuses_nothing(experiment):
            return None
        is_same = [session.identities.fingerprint(experiment)] == record.fingerprints
        return is_same and not (record.replayed and session.identities.has_recorded_since(name, seconds_of(made)))
    except (RagHarnessError, OSError):
        return None  # for example, a key is missing


# The mark of a run in its output folder: from before its first question until it leaves results, or why it left none.
#
# A report of the folder would otherwise speak of the run before as if it were the last one.

_PRESSED = "it was interrupted."


class RunMarker:
    """The mark of this run, in the process that writes."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._is_begun = False

    def collection_done(self, selected: Collected) -> None:
        """Mark the run, if it has a question to ask. The folder is there, and it is locked."""
        if not self._session.config.option.collectonly and selected.by_node:
            self._is_begun = True
            _mark(self._session.config, self._session.output, "")

    def ended(self, why: str) -> None:
        """Note why a marked run ends. Nothing is noted once its results are there."""
        from rag_harness.records.manifest import read_begun

        if self._is_begun and read_begun(self._session.output) is not None:
            _mark(self._session.config, self._session.output, why)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why pytest has stopped."""
        self.ended(str(excinfo.value) or _PRESSED)

    def pytest_sessionfinish(self) -> None:
        """Note that tests could not be collected: under xdist, pytest is not stopped by that."""
        if not self._is_begun and has_failed_to_collect(self._session.config) and self._session.is_whole:
            refused(self._session.config, "tests could not be collected.")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Note the error."""
        self.ended(str(excrepr).rpartition("\n")[2])


def refused(config: pytest.Config, why: object) -> None:
    """Mark a run that ended before it could begin, in a folder where an earlier one left results."""
    from rag_harness.records.manifest import MANIFEST

    only_asks = config.option.collectonly or config.option.help or config.option.version
    output = output_asked(config)
    if not only_asks and not is_worker(config) and (output / MANIFEST).is_file():
        _mark(config, output, str(why))


def _mark(config: pytest.Config, output: Path, why: str) -> None:
    from rag_harness.core.files import now
    from rag_harness.records.manifest import BegunRun, write_begun

    with suppress(OSError):  # a disk that is full keeps no results either, and says so by itself
        write_begun(output, BegunRun(date=now(), command=command_said(config), why=why))
