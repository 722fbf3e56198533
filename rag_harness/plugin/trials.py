"""From a test to the result of its trial: a stored row, or a run together with the trials of the tests that follow."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from rag_harness.errors import CriticalError, PrerequisiteError, RecordingMissError
from rag_harness.plugin.ahead import Ahead
from rag_harness.plugin.equipment import Equipment
from rag_harness.plugin.items import own_fixture, trial_id_of
from rag_harness.plugin.judgements import Judgements
from rag_harness.plugin.own_turns import OwnTurns
from rag_harness.plugin.repeats import Repeats
from rag_harness.plugin.run_again import RunAgain
from rag_harness.plugin.shipped import FAILED, RUN_AGAIN, NotRun, Shipped
from rag_harness.work.local_work import harness_at_work

if TYPE_CHECKING:
    import pytest

    from rag_harness.engine.jobs import JobResult
    from rag_harness.engine.row_judging import JudgedRow
    from rag_harness.engine.trial import TrialOutcome
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.plugin.session import RagSession
    from rag_harness.protocols import Experiment
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import TrialId


class TrialRunner:
    """The trials of one process."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self.equipment = Equipment(session, self._keep)
        self.ahead = Ahead(session, self.equipment.stored, self._submit_if_new)
        self.judgements = Judgements(session, self.equipment)
        self.own_turns = OwnTurns(session, self.equipment, self.judgements)
        self.repeats = Repeats(session, self.equipment, self.judgements, self.own_turns)
        self.run_again = RunAgain(session, self.equipment, self.judgements, self.own_turns)
        self._asked: dict[TrialId, tuple[Trial, Experiment]] = {}
        self._prepared: set[str] = set()
        self._tests: Counter[TrialId] = Counter()
        self._forgotten: set[TrialId] = set()
        self._fixture_of: dict[str, Any] = {}

    async def _keep(self, result: JobResult) -> None:
        """Keep a result on disk. A row is then judged, before any test has seen it."""
        from rag_harness.engine.trial import TrialOutcome

        if not isinstance(result, TrialOutcome):
            if result.new:
                await self.equipment.journal.get().keep(b"".join(result.new))
        elif result.row is not None:
            await self.equipment.journal.get().keep(result.row.line().encode())
            asked = self._asked.pop(result.row.trial, None)
            if asked is not None:
                self._follow(*asked, result.row)

    def _follow(self, trial: Trial, experiment: Experiment, row: ExperimentResult) -> bool:
        """Judge a row and answer its trial again, as wanted; return whether any of that is under way."""
        trial = self._session.cases.renewed(trial, row)
        is_judged = self.judgements.after(trial, row)
        # An answer that raised is a try, too: a promise over repeats counts how often that happens.
        return self.repeats.after(trial, experiment) or is_judged

    def result(self, item: pytest.Item, trial: Trial, experiment: Experiment) -> Shipped | NotRun:
        """Return the result of ``trial``; to a test that has failed on one and is run again, a new one.

        Raises:
            PrerequisiteError: the index or a model cannot be made.
            CriticalError: the trial met an error that would stop every later trial, too.
        """
        found = self._result(item, trial, experiment)
        if item.stash.get(FAILED, False) and isinstance(found, Shipped) and not found.critical:
            del item.stash[FAILED]
            found, item.stash[RUN_AGAIN] = self.run_again.result(item, trial, experiment, found)
        return found

    def _result(self, item: pytest.Item, trial: Trial, experiment: Experiment) -> Shipped | NotRun:
        if trial.id in self._forgotten:
            # This happens if a plugin runs failed tests again. The row is in the journal.
            return Shipped(self.equipment.stored.get().reread(self.equipment.journal.get().file, trial.id))
        if self.equipment.is_worker and self.ahead.is_of_a_new_batch(item):
            # A worker that died has left its batches to the others, and its finished rows in its journal.
            self.equipment.stored.get().look_for_the_dead()
        self._check_only_pipeline(item, trial)
        if self._session.settings.judge_repeats:
            self.judgements.choose_repeated(found for each in item.session.items if (found := trial_id_of(each)))
        stored = self._stored_or_left(trial, experiment)
        if stored is not None:
            self._count(trial.id, item.session.items)
            if self._follow(trial, experiment, stored[0]):
                self.judgements.try_out(trial.id)
                self.ahead.run(item, trial.id, experiment)
            return Shipped(*stored)
        if ended := self.own_turns.ended(trial):
            self._count(trial.id, item.session.items)
            self.repeats.after(trial, experiment)
            return NotRun("", ended)
        self.judgements.make_sure(experiment.id)
        self._submit(trial, experiment)
        if self.judgements.is_untried(trial.experiment):
            self.equipment.engine.get().result(trial.id)
            self.judgements.try_out(trial.id)
        self.ahead.run(item, trial.id, experiment)
        outcome = self._outcome(trial.id, item.session.items)
        if outcome.row is None:
            if outcome.ended:
                self.repeats.after(trial, experiment)
            return NotRun(outcome.not_run, outcome.ended)
        if outcome.critical and outcome.row.ok:
            # The answers are in the journal, but a file beside it could not be written.
            raise CriticalError(str(outcome.error))
        return Shipped(
            outcome.row, error=outcome.error if self.equipment.is_inline else None, critical=outcome.critical
        )

    def _check_only_pipeline(self, item: pytest.Item, trial: Trial) -> None:
        """Refuse two pipelines with one name: they would share their rows."""
        fixture = own_fixture(item)
        known = self._fixture_of.setdefault(trial.experiment, fixture)
        if fixture is not known or (fixture is not None and fixture.params is not None):
            raise PrerequisiteError(
                f"Experiment {trial.experiment!r} has several pipelines in this run (rag_pipeline has parameters or "
                f"several definitions). Give each its own name: @pytest.mark.rag_experiment(…)."
            )

    def _outcome(self, trial_id: TrialId, items: list[pytest.Item]) -> TrialOutcome:
        """Return the outcome of a trial. The engine forgets it after the last of its tests has asked."""
        outcome = cast("TrialOutcome", self.equipment.engine.get().result(trial_id))
        self._count(trial_id, items)
        if self._tests[trial_id] <= 0 and outcome.row is not None and outcome.row.ok:
            self.equipment.engine.get().forget(trial_id)
            self._forgotten.add(trial_id)
        return outcome

    def _count(self, trial_id: TrialId, items: list[pytest.Item]) -> None:
        """Count down the tests that have yet to ask for a trial."""
        if not self._tests:
            self._tests.update(found for item in items if (found := trial_id_of(item)) is not None)
        self._tests[trial_id] -= 1

    def stored(self, trial: Trial, experiment: Experiment) -> tuple[ExperimentResult, bool] | None:
        """Return the stored row of a trial that need not be run, and whether an earlier run made it."""
        if self.own_turns.are(trial):
            return self.own_turns.stored(
                trial, lambda turn: self._stored(turn, experiment), lambda turn: self._last(turn, experiment)
            )
        return self._stored(trial, experiment)

    def _last(self, trial: Trial, experiment: Experiment) -> ExperimentResult | None:
        """Return the last row of a turn, also with an error: it tells what a service may have heard."""
        identities, stored = self._session.identities, self.equipment.stored.get()
        fingerprint, of_any_run = identities.fingerprint(experiment), identities.looks_at_earlier_turns(experiment)
        return stored.last(trial.experiment, fingerprint, trial.case.query.query_id, of_any_run=of_any_run)

    def _stored(self, trial: Trial, experiment: Experiment) -> tuple[ExperimentResult, bool] | None:
        fingerprint = self._session.identities.fingerprint(experiment)
        found = self.equipment.stored.get().find(trial.experiment, fingerprint, trial.case.query.query_id)
        is_renewed = found is not None and found[1] and self._session.identities.is_renewed(found[0])
        return None if is_renewed else found

    def _stored_or_left(self, trial: Trial, experiment: Experiment) -> tuple[ExperimentResult, bool] | None:
        """Return the row as ``stored`` does. Before the first trial runs, rows on a cluster's nodes count, too."""
        found = self.stored(trial, experiment)
        return self.stored(trial, experiment) if found is None and self.equipment.opens() else found

    def _submit_if_new(self, trial: Trial, experiment: Experiment) -> bool:
        """Submit a trial ahead of its test and return True; False if it need be neither run nor judged."""
        if trial.id in self._forgotten:
            return False
        stored = self._stored_or_left(trial, experiment)
        if stored is not None:
            return self._follow(trial, experiment, stored[0])
        if self.own_turns.ended(trial):
            return self.repeats.after(trial, experiment)
        self._submit(trial, experiment)
        return True

    def _submit(self, trial: Trial, experiment: Experiment) -> None:
        workplace, fingerprint = self.equipment.workplace.get(), self._session.identities.fingerprint(experiment)
        if workplace.is_here:
            self._prepare(experiment)
        self._asked.setdefault(trial.id, (trial, experiment))
        if self.own_turns.are(trial):
            self.own_turns.submit(
                trial, fingerprint, lambda turn, asking: workplace.answer(turn, experiment, fingerprint, asking)
            )
        else:
            self.equipment.engine.get().submit(trial.id, lambda: workplace.answer(trial, experiment, fingerprint))

    def _prepare(self, experiment: Experiment) -> None:
        if experiment.prepare is None or experiment.id in self._prepared:
            return
        self._session.parts.loop = lambda calls: self.equipment.engine.get().run(calls)
        # Trials that retrieve report a missing recording themselves. Trials that do not retrieve go on.
        with suppress(RecordingMissError), harness_at_work():
            experiment.prepare(self._session.experiments.queries(experiment))
        self._prepared.add(experiment.id)

    def judged(self, trial: TrialId, test: str) -> JudgedRow | None:
        """Return the judgement of a trial, to its first test; None if nothing is judged."""
        return self.judgements.ship(trial, test, forget=self._tests[trial] <= 0)

    def answered_again(self, trial: TrialId) -> dict[str, list[Any]]:
        """Return what a report carries of a trial's repeats, to its first test."""
        found = self.repeats.ship(trial) if self._session.settings.repeats > 1 else {}
        lines = [*self.own_turns.said_before(trial), *found.get("rag_again", ())]
        return {**found, "rag_again": lines} if lines else found

    def abandon(self, experiment: str) -> None:
        """Ask no more about an experiment. Waiting trials are dropped; those under way are kept but not judged."""
        for trial_id in self.ahead.abandon(experiment):
            self._asked.pop(trial_id, None)
            self.equipment.engine.get().drop(trial_id)
            self.equipment.engine.get().drop((trial_id, "judged"))
            self.repeats.drop(trial_id)
