"""Asks one experiment its questions and judges the answers: rows and scores as a run of pytest writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from threading import Lock
from typing import cast
from uuid import uuid4

from rag_harness.engine.identities import Identities
from rag_harness.engine.jobs import JobResult
from rag_harness.engine.journal import JOURNALS, Journal
from rag_harness.engine.loop import BackgroundLoop
from rag_harness.engine.panel_judging import PanelJudging, judging_of
from rag_harness.engine.row_judging import JudgedRow, Judging
from rag_harness.engine.stored import Stored, adopt_journals
from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_rows import Trial
from rag_harness.engine.workplace import Here
from rag_harness.errors import CriticalError, RagHarnessError, RecordingMissError
from rag_harness.judges.traits import asks_a_model
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.notebook.notebook_record import Arrived
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.results.file import ResultFile
from rag_harness.results.prompts import PromptFiles
from rag_harness.results.result_paths import result_path, scores_path
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score_file import ScoreFile
from rag_harness.settings import access_of
from rag_harness.types import Case, TrialId
from rag_harness.work.local_work import harness_at_work
from rag_harness.work.once import Once

_ALONE = 5
"""How many answers are asked for one at a time until a judge over the network has judged once."""
_SPENT = ("prompt_tokens", "completion_tokens", "calls", "recorded")


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
        self._stored = Stored(self._output, uuid4().hex, self._settings.overwrite)
        self._engine: Once[BackgroundLoop[JobResult]] = Once(self._make_engine)
        self._journal = Once(lambda: Journal(self._output / JOURNALS, f"{uuid4().hex}-notebook"))
        self._here = Here(self._settings, PromptFiles(self._output).keep)
        self._judging: Once[Judging | PanelJudging] = Once(lambda: judging_of(parts, pages_of, None))
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
            said = judged.plain()
            self.arrived.authors.update(dict.fromkeys((judge, model, made) for judge, model, made in said["authors"]))
            self.arrived.judging.update(dict(zip(_SPENT, said["spent"], strict=True)))
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
