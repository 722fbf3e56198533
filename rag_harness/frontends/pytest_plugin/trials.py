"""Trials: from a test to its result, with the resources of a run and the prefetch of later trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import CriticalError, PrerequisiteError
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin.conversations import OwnTurns
from rag_harness.frontends.pytest_plugin.items import (
    is_skipped,
    made_in,
    own_fixture,
    trial_id_of,
    trial_of,
)
from rag_harness.frontends.pytest_plugin.judgements import Judgements
from rag_harness.frontends.pytest_plugin.preparation import Preparation
from rag_harness.frontends.pytest_plugin.repeats import Repeats, RunAgain
from rag_harness.frontends.pytest_plugin.stash import FAILED, RUN_AGAIN
from rag_harness.frontends.pytest_plugin.trial_report import NotRun, TrialResult
from rag_harness.frontends.pytest_plugin.workers import (
    ALONE,
    BATCHED,
    is_worker,
    plan,
    run_id,
    worker_count,
    worker_id,
)

if TYPE_CHECKING:
    import pytest

    from rag_harness.core.protocols import Experiment
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trial_report import EndedTurn
    from rag_harness.records.files import PromptFiles
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.distributed import Carried
    from rag_harness.runs.engine import Engine, JobResult, Workplace
    from rag_harness.runs.journal import Journal, ResumeStore
    from rag_harness.runs.judging import JudgedRow
    from rag_harness.runs.trial import Trial, TrialOutcome


# What a process needs to run its trials: engine, journal, stored rows and prompts. Each is made when first needed.


class RunResources:
    """One of each for a process.

    Args:
        session: state of the run.
        keep: is given each result before any test sees it.

    Attributes:
        engine: runs jobs in this process.
        journal: keeps the results of this process.
        stored: finds rows and scores that need not be made again.
        prompts: keeps the messages of calls.
        workplace: where trials are answered and judged.
    """

    def __init__(self, session: RagSession, keep: Callable[[JobResult], Awaitable[None]]) -> None:
        self._session, self._keep = session, keep
        self._run = run_id(session.config) or uuid4().hex
        self.engine: Lazy[Engine] = Lazy(self._make_engine)
        self.journal, self.stored = Lazy(self._open_journal), Lazy(self._read_stored)
        self.prompts, self.workplace = Lazy(self._open_prompts), Lazy(self._find_workplace)
        session.ledger = self._ledger

    def _ledger(self) -> Any:
        """Return the ledger of the cluster, where trials are answered on one."""
        return getattr(self.workplace.get(), "ledger", None)

    def opens(self) -> bool:
        """Return whether the workplace was opened just now: opening it may have brought rows."""
        is_new = self.workplace.made is None
        self.workplace.get()
        return is_new

    @property
    def is_worker(self) -> bool:
        """Whether this process shares the run with others, as pytest-xdist has it."""
        return is_worker(self._session.config)

    @property
    def is_inline(self) -> bool:
        """Whether trials run one at a time, in the thread of the tests, for debugging."""
        return bool(self._session.config.getoption("usepdb", False)) and self._session.settings.concurrency == 1

    def _make_engine(self) -> Engine:
        from rag_harness.runs.engine import BackgroundLoop, InlineLoop

        # The journal is opened first: otherwise a call might be paid for whose answer could not be kept.
        self.journal.get()
        return InlineLoop(self._keep) if self.is_inline else BackgroundLoop(self._session.share.concurrency, self._keep)

    def _find_workplace(self) -> Workplace:
        from rag_harness.runs.engine import LocalWorkplace as Here

        if self._session.settings.engine == "local" or self.is_inline:
            return Here(self._session.settings, self.prompts.get().keep)
        return self._on_ray()

    def _on_ray(self) -> Workplace:
        from rag_harness.core.errors import SettingsError
        from rag_harness.runs.distributed import RayWorkplace

        if self.is_worker:
            raise SettingsError("--rag-engine=ray has workers of its own, and so has -n of pytest-xdist. Leave -n out.")
        ray = RayWorkplace(self._session.settings, self._run, self._carried, self.prompts.get().keep_file)
        self.engine.get().run(ray.open())
        self._take_what_nodes_had()
        return ray

    def _take_what_nodes_had(self) -> None:
        """Copy rows that an earlier run left on disks of nodes into the result files, before a trial is paid for."""
        from rag_harness.runs.journal import AdoptedRows as Adopted
        from rag_harness.runs.journal import adopt_journals

        # No result file is open yet. The rows come from the workers that have just started.
        if adopt_journals(self._session.output) != Adopted():
            self.stored.forget()

    def _carried(self, experiment: Experiment) -> Carried:
        from rag_harness.runs.distributed import carry

        return carry(
            experiment,
            is_registered=self._session.experiments.is_registered(experiment),
            queries=self._session.experiments.queries(experiment),
            queries_digest=self._session.identities.queries_digest(experiment),
            settings=self._session.settings,
        )

    def _open_journal(self) -> Journal:
        from rag_harness.runs.journal import JOURNALS, Journal

        return Journal(self._session.output / JOURNALS, f"{self._run}-{worker_id(self._session.config)}")

    def _open_prompts(self) -> PromptFiles:
        from rag_harness.records.files import PromptFiles

        return PromptFiles(self._session.output)

    def _read_stored(self) -> ResumeStore:
        from rag_harness.runs.journal import ResumeStore as Stored

        stored = Stored(self._session.output, self._run, self._session.settings.overwrite)
        stored.look_for_the_dead()
        return stored

    def in_flight(self) -> int | None:
        """The number of running trials; None without an engine, as in the controller of an xdist run."""
        engine = self.engine.made
        return engine.in_flight if engine is not None else None

    def stop(self) -> None:
        """Make no more calls: all tests are done."""
        if self.engine.made is not None:
            self.engine.made.stop()

    def close(self) -> None:
        """Stop the engine and close the journal, which has what came back."""
        if self.engine.made is not None:
            self.engine.made.close(self._close_workplace, self._session.close_models)
        if self.journal.made is not None:
            self.journal.made.close()

    async def _close_workplace(self) -> None:
        if self.workplace.made is not None:
            await self.workplace.made.aclose()


MOST_AHEAD = 256
"""How many trials may be submitted before their tests come. It bounds memory, and what a stopped run has paid for."""
LONGEST_ROW = 8
"""How many turns of a conversation count as one trial there, where each is asked after the one before it."""
FEWEST_AHEAD = 4
"""The same limit, at least, where a run that may stop early: trials beyond the stop are paid for and not used."""


class Prefetch:
    """Walks through the tests that follow the current one.

    Args:
        session: state of the run.
        stored: looks for what dead processes have left, before a batch that one of them may have begun.
        submit: submits a trial, ahead of its test, beside the test that is asked about the last experiment; returns
            False if it need not be run, and None if it cannot be asked yet.
    """

    def __init__(
        self,
        session: RagSession,
        stored: Lazy[ResumeStore],
        submit: Callable[[Trial, Experiment, Experiment], bool | None],
    ) -> None:
        self._session, self._stored, self._submit = session, stored, submit
        self._is_worker = is_worker(session.config)
        self._is_batched = BATCHED.received(session.config)
        self._alone = frozenset(ALONE.received(session.config))
        """Tests of which one has killed a worker: none is run beside another."""
        self.next_item: pytest.Item | None = None
        self._batches: dict[str, str] = {}
        self._batches_begun: set[str | None] = {None}
        self._walked: set[Any] = set()
        self._upcoming: Iterator[tuple[pytest.Item, pytest.Item, Experiment]] = iter(())
        self._waiting: tuple[pytest.Item, pytest.Item, Experiment] | None = None
        """The test whose trial waits until its experiment is prepared."""
        self._submitted: dict[TrialId, TrialId] = {}
        self._rows: Counter[TrialId] = Counter()
        self._unusable: set[str] = set()
        self.stops_early = False

    def run(self, item: pytest.Item, trial_id: TrialId, experiment: Experiment) -> None:
        """Submit trials of the tests that follow ``item``, whose own trial of ``experiment`` is under way."""
        self._forget_those_before(trial_id, item.session.items)
        more = self._after(item)
        if more:
            self._upcoming = chain(self._upcoming, ((following, item, experiment) for following in more))
        most = self._most
        # Turns that wait for each other are one call at a time.
        while len(self._rows) < most and len(self._submitted) < LONGEST_ROW * most:
            following = self._waiting or next(self._upcoming, None)
            if following is None:
                return
            self._waiting = None if self._submit_ahead(*following, experiment) else following
            if self._waiting is not None:
                return

    @property
    def _most(self) -> int:
        concurrency = self._session.share.concurrency
        return max(FEWEST_AHEAD, 2 * concurrency) if self.stops_early else max(MOST_AHEAD, 4 * concurrency)

    def abandon(self, experiment: str) -> list[TrialId]:
        """Submit no more trials of an experiment, and return those whose tests have not come."""
        self._unusable.add(experiment)
        left = [trial_id for trial_id in self._submitted if trial_id.experiment == experiment]
        for trial_id in left:
            self._no_longer_ahead(trial_id)
        return left

    def _no_longer_ahead(self, trial_id: TrialId) -> None:
        row = self._submitted.pop(trial_id)
        self._rows[row] -= 1
        if not self._rows[row]:
            del self._rows[row]

    def _row_of(self, trial_id: TrialId) -> TrialId:
        """Return what a trial shares with those that are asked one after the other: its conversation, or itself."""
        conversation, mark, _ = trial_id.query_id.partition("#")
        is_own = mark and self._session.histories.is_own(trial_id.experiment)
        return TrialId(trial_id.experiment, conversation) if is_own else trial_id

    def is_of_a_new_batch(self, item: pytest.Item) -> bool:
        """Return whether a new batch begins here. Without batches the answer is always yes."""
        batch = self._batch_of(item.session.items).get(item.nodeid)
        return batch is None or batch not in self._batches_begun

    def _forget_those_before(self, trial_id: TrialId, items: list[pytest.Item]) -> None:
        """Count the trials up to this one as no longer ahead. Skipped tests have never asked for their trials."""
        if trial_id not in self._submitted and len(self._submitted) >= min(MOST_AHEAD, self._most):
            positions = {found: n for n, item in enumerate(items) if (found := trial_id_of(item)) is not None}
            here = positions.get(trial_id, 0)
            for late in [late for late in self._submitted if positions.get(late, 0) <= here]:
                self._no_longer_ahead(late)
        while trial_id in self._submitted:
            self._no_longer_ahead(next(iter(self._submitted)))

    def _submit_ahead(self, item: pytest.Item, before: pytest.Item, made: Experiment, current: Experiment) -> bool:
        """Submit the trial of a test if it need be run; return False if that has to wait.

        Args:
            item: the test.
            before: an earlier test; ``made`` is its experiment. Both tests may share a fixture.
            current: the experiment that is asked about now.
        """
        trial_id = trial_id_of(item)
        if trial_id is None or trial_id in self._submitted or trial_id.experiment in self._unusable or is_skipped(item):
            return True
        try:
            found = self._trial(item, trial_id, before, made)
            is_ahead = found is not None and self._submit(*found, current)
        except (CriticalError, PrerequisiteError):
            if trial_id.experiment != GOLDEN:
                raise
            # The golden suite's own first test reports this error. The current test is about something else.
            self._unusable.add(GOLDEN)
            return True
        if is_ahead:
            row = self._submitted[trial_id] = self._row_of(trial_id)
            self._rows[row] += 1
        return is_ahead is not None

    def _trial(
        self, item: pytest.Item, trial_id: TrialId, current: pytest.Item, experiment: Experiment
    ) -> tuple[Trial, Experiment] | None:
        """Return the trial of ``item`` and its experiment; None if they cannot be known or made yet."""
        if trial_id.experiment == GOLDEN:
            return self._session.golden_trial(trial_id.query_id), self._session.golden.experiment
        trial, fixture = trial_of(item), own_fixture(item)
        if trial is None:
            return None
        if fixture is None:
            return trial, self._session.experiments.of(trial.experiment)
        # A user's fixture makes the pipeline when its test runs. Only one that also made the current test's is there
        # already.
        shared = fixture.params is None and fixture.scope == "session" and fixture is own_fixture(current)
        if not shared:
            return None
        handed = self._session.experiments.handed(experiment)
        return trial, self._session.experiments.of(trial.experiment, handed, made_in(fixture))

    def _after(self, item: pytest.Item) -> Iterable[pytest.Item]:
        """Return the tests whose trials this process may run ahead now, in their order."""
        items = item.session.items
        if not self._is_worker:
            # Once for each of the user's own fixtures: its pipeline is known only when its first test has run.
            fixture = own_fixture(item)
            if fixture in self._walked:
                return ()
            self._walked.add(fixture)
            return islice(items, items.index(item) + 1, None)
        return self._of_new_batches(item, items)

    def _of_new_batches(self, item: pytest.Item, items: list[pytest.Item]) -> Iterable[pytest.Item]:
        batch_of = self._batch_of(items)
        at_hand = {batch_of.get(item.nodeid)}
        if self.next_item is not None and self.next_item.nodeid not in self._alone:
            at_hand.add(batch_of.get(self.next_item.nodeid))
        new = at_hand - self._batches_begun
        self._batches_begun |= new
        if not new:
            return ()
        self._stored.get().look_for_the_dead()
        return [following for following in items if batch_of.get(following.nodeid) in new]

    def _batch_of(self, items: list[pytest.Item]) -> dict[str, str]:
        if not self._is_batched:
            return {}
        if not self._batches:
            concurrency = self._session.settings.concurrency
            self._batches.update(plan([item.nodeid for item in items], worker_count(self._session.config), concurrency))
            self._batches.update({nodeid: nodeid for nodeid in self._alone})
        return self._batches


class TrialRunner:
    """The trials of one process."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self.equipment = RunResources(session, self._keep)
        self.ahead = Prefetch(session, self.equipment.stored, self._submit_if_new)
        self.judgements = Judgements(session, self.equipment)
        self.own_turns = OwnTurns(session, self.equipment, self.judgements)
        self.repeats = Repeats(session, self.equipment, self.judgements, self.own_turns)
        self.run_again = RunAgain(session, self.equipment, self.judgements, self.own_turns)
        self._asked: dict[TrialId, tuple[Trial, Experiment]] = {}
        self.preparation = Preparation(session, self.equipment)
        self._tests: Counter[TrialId] = Counter()
        self._forgotten: set[TrialId] = set()
        self._fixture_of: dict[str, Any] = {}

    async def _keep(self, result: JobResult) -> None:
        """Keep a result on disk. A row is then judged, before any test has seen it."""
        from rag_harness.runs.trial import TrialOutcome

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

    def result(self, item: pytest.Item, trial: Trial, experiment: Experiment) -> TrialResult | NotRun:
        """Return the result of ``trial``; to a test that has failed on one and is run again, a new one.

        Raises:
            PrerequisiteError: the index or a model cannot be made.
            CriticalError: the trial met an error that would stop every later trial, too.
        """
        found = self._result(item, trial, experiment)
        if item.stash.get(FAILED, False) and isinstance(found, TrialResult) and not found.critical:
            del item.stash[FAILED]
            found, item.stash[RUN_AGAIN] = self.run_again.result(item, trial, experiment, found)
        return found

    def _result(self, item: pytest.Item, trial: Trial, experiment: Experiment) -> TrialResult | NotRun:
        if trial.id in self._forgotten:
            # This happens if a plugin runs failed tests again. The row is in the journal.
            return TrialResult(self.equipment.stored.get().reread(self.equipment.journal.get().file, trial.id))
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
            return TrialResult(*stored)
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
        return TrialResult(
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

    def _submit_if_new(self, trial: Trial, experiment: Experiment, current: Experiment) -> bool | None:
        """Submit a trial ahead of its test and return True; False if it need be neither run nor judged.

        None if its experiment is still prepared, beside the tests of ``current``.
        """
        if trial.id in self._forgotten:
            return False
        stored = self._stored_or_left(trial, experiment)
        if stored is not None:
            return self._follow(trial, experiment, stored[0])
        if self.own_turns.ended(trial):
            return self.repeats.after(trial, experiment)
        if self.equipment.workplace.get().is_here and not self.preparation.is_ready(experiment, current):
            return None
        self._submit(trial, experiment)
        return True

    def _submit(self, trial: Trial, experiment: Experiment) -> None:
        workplace, fingerprint = self.equipment.workplace.get(), self._session.identities.fingerprint(experiment)
        if workplace.is_here:
            self.preparation.make_sure(experiment)
        self._asked.setdefault(trial.id, (trial, experiment))
        if self.own_turns.are(trial):
            self.own_turns.submit(
                trial, fingerprint, lambda turn, asking: workplace.answer(turn, experiment, fingerprint, asking)
            )
        else:
            self.equipment.engine.get().submit(trial.id, lambda: workplace.answer(trial, experiment, fingerprint))

    def judged(self, trial: TrialId, test: str) -> JudgedRow | None:
        """Return the judgement of a trial, to its first test; None if nothing is judged."""
        return self.judgements.ship(trial, test, forget=self._tests[trial] <= 0)

    def answered_again(self, trial: TrialId) -> tuple[tuple[str, ...], tuple[EndedTurn, ...]]:
        """Return the lines of a trial's repeats and the turns that ended among them, to its first test."""
        lines, ended = self.repeats.ship(trial) if self._session.settings.repeats > 1 else ((), ())
        return (*self.own_turns.said_before(trial), *lines), ended

    def abandon(self, experiment: str) -> None:
        """Ask no more about an experiment. Waiting trials are dropped; those under way are kept but not judged."""
        for trial_id in self.ahead.abandon(experiment):
            self._asked.pop(trial_id, None)
            self.equipment.engine.get().drop(trial_id)
            self.equipment.engine.get().drop((trial_id, "judged"))
            self.repeats.drop(trial_id)
