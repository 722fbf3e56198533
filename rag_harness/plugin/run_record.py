"""Writes the record of a run beside its rows: what it was to look at, and the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rag_harness.errors import PrerequisiteError
from rag_harness.plugin.run_data import RunData
from rag_harness.plugin.screen import stopped_said
from rag_harness.types import GOLDEN, TrialId

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.measures.golden_run import RetrievalCase
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.table_measures import TableMeasures
    from rag_harness.results.cases import KeptCase
    from rag_harness.results.manifest import EndsAgain, RunManifest, SuiteRecord


class RunRecord:
    """The record of a run, in the process that writes. After ``leave``, ``run_findings`` reads its files."""

    def __init__(self, session: RagSession, arrivals: Recorder, measures: TableMeasures) -> None:
        self._session, self._arrivals, self._measures = session, arrivals, measures
        self._data = RunData(session)
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
        from rag_harness.engine.interrupted_runs import InterruptedRuns
        from rag_harness.plugin.earlier_runs import left_by_earlier_runs
        from rag_harness.results.cases import write_cases
        from rag_harness.results.manifest import write_manifest

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
        from rag_harness.files.sources import file_sha256
        from rag_harness.results.cases import CaseFile, write_cases

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
        from rag_harness.engine.foreign_text import foreign_text
        from rag_harness.errors import RagHarnessError

        try:
            data = self._data.of(suite.data)
            if not data.has_documents:
                return suite
            found = foreign_text(self._session.output, suite, data.documents)
        except (RagHarnessError, OSError):
            return suite  # the documents cannot be read: nothing can be held against them
        return suite.model_copy(update=found.fields())

    def _is_ours(self, name: str) -> bool:
        """Whether the contexts of a suite come from this package's own parts, which cut them from the pages."""
        from rag_harness.engine.golden.retrievers import RETRIEVERS
        from rag_harness.errors import RagHarnessError
        from rag_harness.registry.own_parts import is_own_code

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
        from rag_harness.engine.foreign_text import cuts_pages

        return cuts_pages(experiment, session.settings)

    def _asking(self, authors: Collection[tuple[str, str, str]]) -> dict[str, bool]:
        """Return which judges of an experiment ask a model."""
        if not authors:
            return {}
        from rag_harness.judges.traits import judges_asking

        return judges_asking(self._session.settings, [*authors])

    def _suite(self, name: str, selected: list[str], interrupted: bool) -> SuiteRecord:
        from rag_harness.engine.interrupted_runs import InterruptedRuns
        from rag_harness.measures.agents.tool_measures import tools_demanded
        from rag_harness.measures.expectation_measures import demands_of
        from rag_harness.results.manifest import SuiteRecord, ids_or_all
        from rag_harness.results.result_paths import result_path

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
        from rag_harness.results.manifest import retrieving_in

        return retrieving_in(self._session.output)

    @cached_property
    def _asked_of_contexts(self) -> frozenset[str]:
        """The experiments that a gate asks about what they retrieve."""
        from rag_harness.gates.belonging import gates_set
        from rag_harness.gates.gates_of_run import asked_of_contexts

        settings = self._session.settings
        return asked_of_contexts(gates_set(settings), settings.k)

    def _has_ended(self, trial: TrialId) -> bool:
        """Whether the test of a trial without a row has begun: if pytest was stopped before it, nothing was lost."""
        return trial in self._arrivals.silent or not stopped_said(self._session.config)

    def _taken_out(self, name: str) -> dict[str, str]:
        return {talk: why for (suite, talk), why in sorted(self._arrivals.taken_out.items()) if suite == name}

    def _again(self, name: str, answers: int) -> dict[int, EndsAgain]:
        """Return how simulated users have ended the repeats of their conversations."""
        from rag_harness.results.manifest import EndsAgain
        from rag_harness.results.repeat_names import repeat_name

        if not self._user(name):
            return {}
        found = {}
        for repeat in range(2, answers + 1):
            derived = repeat_name(name, repeat)
            ended = {each.query_id: why for each, why in self._arrivals.ended.items() if each.experiment == derived}
            found[repeat] = EndsAgain(ended=ended, taken_out=self._taken_out(derived))
        return found

    def _user(self, name: str) -> str:
        from rag_harness.users.simulated_user import played_by

        return played_by(self._session.settings) if self._session.cases.is_played(name) else ""

    def _computes(self, experiment: str) -> bool:
        from rag_harness.engine.repeated import computes_its_answers

        return computes_its_answers(experiment, self._session.settings)

    def _total(self, name: str, selected: list[str]) -> int:

        if name != GOLDEN:
            return len(self._session.cases.all_of(name))
        return len(self._golden_ids) if self._golden_ids is not None else len(selected)

    def _cases(self, suite: str) -> Iterable[KeptCase]:
        from rag_harness.results.cases import kept

        return self._golden_cases() if suite == GOLDEN else map(kept, self._session.cases.all_of(suite))

    def _golden_cases(self) -> list[KeptCase]:
        from rag_harness.measures.golden_run import RetrievalCase

        try:
            return [_kept(case) for case in self._session.golden.cases.values()]
        except PrerequisiteError:
            # The first test has said why. All entries are lost.
            ids = self._golden_ids if self._golden_ids is not None else self._trials().get(GOLDEN, {})
            return [_kept(RetrievalCase(case_id, "", {case_id: 1})) for case_id in ids]

    def _manifest(self, suites: Mapping[str, SuiteRecord]) -> RunManifest:
        from rag_harness.results.manifest import RunManifest, commit_of, now, package_versions
        from rag_harness.settings import masked

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


def _kept(entry: RetrievalCase) -> KeptCase:
    from rag_harness.results.cases import KeptCase

    expected = entry.expected or tuple(entry.relevant)
    return KeptCase(entry.case, entry.slices, expected, entry.justification, entry.passage)
