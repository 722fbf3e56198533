"""The run of an evaluation: rows, scores and record in its output folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, cast
from uuid import uuid4

from rag_harness.core.concurrency import Lazy, harness_at_work
from rag_harness.core.errors import CriticalError, DataError, RagHarnessError, RecordingMissError
from rag_harness.core.files import now
from rag_harness.core.log import close_log, open_log
from rag_harness.core.package import remember_in
from rag_harness.core.process_lock import RUN_LOCK, LockHeldError, process_lock
from rag_harness.core.processes import checks_within
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings, access_of, masked
from rag_harness.core.types import Case, TrialId
from rag_harness.data.datasets import Data
from rag_harness.evaluation.judges.traits import asks_a_model, judges_asking
from rag_harness.evaluation.measures.agents import tools_demanded
from rag_harness.evaluation.measures.expectations import demands_of
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.models.recording.playback import closed_network
from rag_harness.pipelines.experiments import result_path, scores_path
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.cases import CaseFile, stored_case, write_cases
from rag_harness.records.files import PromptFiles, ResultFile, ScoreFile
from rag_harness.records.manifest import (
    QUERIES,
    RunManifest,
    SkippedLines,
    SuiteRecord,
    commit_of,
    ids_or_all,
    package_versions,
    read_manifest,
    retrieving_in,
    write_manifest,
)
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.engine import BackgroundLoop, JobResult, LocalWorkplace
from rag_harness.runs.fingerprint import Identities
from rag_harness.runs.journal import JOURNALS, InterruptedRuns, Journal, ResumeStore, adopt_journals
from rag_harness.runs.judging import JudgedRow, PanelJudging, RowJudge, judging_of
from rag_harness.runs.trial import Trial, TrialOutcome
from rag_harness.tables.answer_warnings import foreign_text
from rag_harness.tables.requested_measures import WantedMeasures


@dataclass
class Arrived:
    """The result of an evaluation: ids of questions with a row, and of those with a row of an earlier run.

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
        write_cases(output, record.cases, map(stored_case, self.cases))
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
            return {}  # the documents cannot be read: nothing can be compared with them
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
        return {name: SkippedLines.of(self.data.queries_file, found)} if found else {}

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


_ALONE = 5
"""How many answers are asked for one at a time until a judge over the network has judged once."""


class NotebookRun:
    """One experiment and its cases.

    Args:
        parts: of the run.
        experiment: is asked.
        cases: what it is asked.
        measures: what its answers are judged on.
        identities: know which rows still stand.
        pages_of: returns the texts of a case's relevant documents.
    """

    def __init__(
        self,
        parts: RunParts,
        experiment: Experiment,
        cases: Sequence[Case],
        measures: Sequence[JudgedMeasure],
        identities: Identities,
        pages_of: Callable[[str, Case], Sequence[str]],
    ) -> None:
        self._parts, self._experiment, self._measures = parts, experiment, measures
        self._settings, self._identities = parts.settings, identities
        self._output = self._settings.path(self._settings.output)
        self._trials = [Trial(experiment.id, case) for case in cases]
        self._of_case = {trial.case.query.query_id: trial for trial in self._trials}
        self._stored = ResumeStore(self._output, uuid4().hex, self._settings.overwrite)
        self._engine: Lazy[BackgroundLoop[JobResult]] = Lazy(self._make_engine)
        self._journal = Lazy(lambda: Journal(self._output / JOURNALS, f"{uuid4().hex}-notebook"))
        self._here = LocalWorkplace(self._settings, PromptFiles(self._output).keep)
        self._judging: Lazy[RowJudge | PanelJudging] = Lazy(lambda: judging_of(parts, pages_of, None))
        self._rows = ResultFile(result_path(self._output, experiment.id), self._settings.overwrite)
        self._scores = ScoreFile(scores_path(self._output, experiment.id), self._settings.overwrite)
        self._under_way: set[str] = set()
        self._known: dict[TrialId, ExperimentResult | None] = {}
        self._taken: set[TrialId] = set()
        self._broken, self._is_closed = "", False
        self._closing = Lock()
        self.arrived = Arrived()

    def run(self) -> None:
        """Ask what has no row yet, judge it, and write both.

        Raises:
            CriticalError: no later question could be answered, or nothing can be judged. Rows that came are kept.
        """
        adopt_journals(self._output)
        if self._measures and (why := self._judging.get().made()):
            raise CriticalError(f"The judge cannot be asked: {why}")
        with ExitStack() as closing:
            closing.callback(adopt_journals, self._output)
            closing.callback(self._close_files)
            closing.callback(self._take_rest)
            closing.callback(self._close_engine)
            self._ask_all()
        if self._broken:
            raise CriticalError(self._broken)

    def stop(self) -> None:
        """Ask nothing more, from another thread. Calls under way get a few seconds."""
        self._close_engine()

    def _ask_all(self) -> None:
        known = self._known = {trial.id: self._standing(trial) for trial in self._trials}
        if not all(known.values()):
            self._prepare()
        alone = _ALONE if self._measures and self._asks_over_the_network() else 0
        waiting = []
        for trial in self._trials:
            row = known[trial.id]
            if row is None:
                self._engine.get().submit(trial.id, lambda trial=trial: self._answered(trial))  # type: ignore[misc]
            else:
                self._judge(trial, row)
            if alone:
                self._take(trial, row)
                alone = 0 if self.arrived.judging["calls"] else alone - 1
            else:
                waiting.append(trial)
        for trial in waiting:
            self._take(trial, known[trial.id])

    def _standing(self, trial: Trial) -> ExperimentResult | None:
        """Return the row of an earlier run that need not be made again."""
        query_id, fingerprint = trial.case.query.query_id, self._fingerprint
        found = self._stored.find(trial.experiment, fingerprint, query_id)
        return None if found is None or self._identities.is_renewed(found[0]) else found[0]

    @property
    def _fingerprint(self) -> str:
        return self._identities.fingerprint(self._experiment)

    def _prepare(self) -> None:
        if self._experiment.prepare is None:
            return
        self._parts.loop = lambda calls: self._engine.get().run(calls)
        # Trials that retrieve report a missing recording themselves.
        with suppress(RecordingMissError), harness_at_work():
            self._experiment.prepare([trial.case.query for trial in self._trials])

    def _asks_over_the_network(self) -> bool:
        return access_of(self._settings).calls_network and asks_a_model(self._settings)

    def _make_engine(self) -> BackgroundLoop[JobResult]:
        if self._is_closed:
            raise CancelledError
        # The journal is opened first: otherwise a call might be paid for whose answer could not be kept.
        self._journal.get()
        return BackgroundLoop(self._settings.concurrency, self._keep)

    async def _answered(self, trial: Trial) -> TrialOutcome:
        if self._broken:
            return TrialOutcome(None, not_run=self._broken)
        outcome = await self._here.answer(trial, self._experiment, self._fingerprint)
        if outcome.critical:
            # No later question can be answered, so waiting ones are not asked.
            row = outcome.row
            self._broken = row.error_text if row is not None and not row.ok else str(outcome.error)
        return outcome

    async def _keep(self, result: JobResult) -> None:
        """Keep a result on disk. A row is then judged."""
        if not isinstance(result, TrialOutcome):
            if result.new:
                await self._journal.get().keep(b"".join(result.new))
        elif result.row is not None:
            await self._journal.get().keep(result.row.line().encode())
            self._judge(self._of_case[result.row.query_id], result.row)

    def _judge(self, trial: Trial, row: ExperimentResult) -> None:
        if not self._measures or not row.ok:
            return
        self._under_way.add(row.query_id)
        judging, find = self._judging.get(), self._stored.score
        job = lambda: judging.row(row, trial.case, self._measures, find)  # noqa: E731
        self._engine.get().submit((trial.id, "judged"), job, first=True)

    def _take(self, trial: Trial, stored: ExperimentResult | None) -> None:
        """Wait for the row of a trial and its judgement, and write what is new of them."""
        query_id = trial.case.query.query_id
        row, not_run = (stored, "") if stored is not None else self._came(trial)
        self._taken.add(trial.id)
        if row is None:
            self.arrived.not_run[query_id] = not_run or "stopped"
            return
        if stored is None:
            self._rows.append(row)
        self.arrived.take(row, is_resumed=stored is not None)
        if query_id in self._under_way:
            self._take_judged(trial)

    def _take_rest(self) -> None:
        """Take what came and nobody has waited for: an interrupt, or an error, has ended the waiting."""
        for trial in (each for each in self._trials if each.id in self._known and each.id not in self._taken):
            with suppress(KeyError, RagHarnessError):  # it was never submitted, or could not be kept
                self._take(trial, self._known[trial.id])

    def _came(self, trial: Trial) -> tuple[ExperimentResult | None, str]:
        try:
            outcome = cast("TrialOutcome", self._engine.get().result(trial.id))
        except CancelledError:
            return None, "stopped"
        return outcome.row, outcome.not_run

    def _take_judged(self, trial: Trial) -> None:
        with suppress(CancelledError):
            judged = cast("JudgedRow", self._engine.get().result((trial.id, "judged")))
            for line in judged.new:
                self._scores.append(line)
            self.arrived.authors.update(dict.fromkeys(judged.authors))
            self.arrived.judging.update(judged.counts)
        if self._judging.get().broken and not self._broken:
            self._broken = f"The judge cannot be asked: {self._judging.get().broken}"

    def _close_files(self) -> None:
        self._rows.close()
        self._scores.close()
        self.arrived.set_aside = self._rows.set_aside

    def _close_engine(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            if self._engine.made is not None:
                self._engine.made.close(self._here.aclose, self._parts.endpoints.aclose)
            if self._journal.made is not None:
                self._journal.made.close()


# The output folder while an evaluation writes to it: held, logged, and without a network in modes that call nobody.
#
# Meanwhile checks of long answers have the time of an answer.


@contextmanager
def written_to(settings: Settings, output: Path, log_named: str = "") -> Iterator[None]:
    """Hold the output folder, write the log, end late checks, and close the network where the mode calls nobody.

    Args:
        settings: of the evaluation.
        output: the folder.
        log_named: the name of the log; none is written where it is empty.

    Raises:
        CriticalError: the folder cannot be written, or another run writes there.
    """
    with ExitStack() as closing:
        try:
            output.mkdir(parents=True, exist_ok=True)
            closing.enter_context(process_lock(output / RUN_LOCK))
        except LockHeldError as error:
            raise CriticalError(
                f"Another run is writing to {output}: {error.by}. Wait until it has ended, or choose a folder: output="
            ) from None
        except OSError as error:
            raise CriticalError(f"Results cannot be written to {output}: {error}. Choose another: output=") from None
        if log_named:
            open_log(settings.path(settings.logs), log_named)
            closing.callback(close_log)
        closing.enter_context(checks_within(settings.deadline))
        remember_in(settings.path(settings.cache_dir))
        if access_of(settings).calls_nobody:
            closing.enter_context(closed_network(settings.qdrant_url))
        yield
