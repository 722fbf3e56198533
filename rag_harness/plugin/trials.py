"""From a test to the result of its trial: stored, or run now together with the trials of the tests that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from rag_harness.errors import PrerequisiteError, RecordingMissError
from rag_harness.local_work import harness_at_work
from rag_harness.plugin.batches import plan
from rag_harness.plugin.stash import NOT_RUN

if TYPE_CHECKING:
    from rag_harness.engine.inline import InlineLoop
    from rag_harness.engine.journal import Journal
    from rag_harness.engine.loop import BackgroundLoop
    from rag_harness.engine.rows import Trial
    from rag_harness.engine.stored import StoredRows
    from rag_harness.engine.trial import Outcome
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.row import ExperimentResult

_AHEAD = 256
"""Trials that are submitted before their tests come: memory is bounded, and a run that is stopped has paid for few."""


@dataclass(frozen=True)
class Shipped:
    """A result on its way from a test to the recorder; ``error`` is what a debugger should see."""

    row: ExperimentResult
    resumed: bool = False
    error: Exception | None = None


class Trials:
    """The trials of one process."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._worker: dict[str, Any] = getattr(session.config, "workerinput", {})
        self.next_item: pytest.Item | None = None
        self._batches: dict[str, str] = {}
        self._batches_ahead: set[str | None] = {None}
        self._walked: set[Any] = set()
        self._upcoming: Iterator[tuple[pytest.Item, pytest.Item, Any]] = iter(())
        self._ahead: dict[str, None] = {}
        self._prepared = False
        self._tests: Counter[str] = Counter()
        self._forgotten: set[str] = set()
        self._fixture_of: dict[str, Any] = {}

    @cached_property
    def engine(self) -> BackgroundLoop[Outcome] | InlineLoop[Outcome]:
        """Runs trials: ahead of the tests, or under a debugger in their thread."""
        from rag_harness.engine.inline import InlineLoop
        from rag_harness.engine.loop import BackgroundLoop

        # Opened before a call is paid for whose answer could not be kept.
        _ = self.journal
        return InlineLoop(self._keep) if self.inline else BackgroundLoop(self._session.share.concurrency, self._keep)

    @property
    def inline(self) -> bool:
        """Whether the user debugs one trial at a time."""
        return bool(self._session.config.getoption("usepdb", False)) and self._session.settings.concurrency == 1

    @cached_property
    def journal(self) -> Journal:
        """Where this process keeps what has come back."""
        from rag_harness.engine.journal import JOURNALS, Journal

        settings = self._session.settings
        return Journal(settings.path(settings.output) / JOURNALS, f"{self._run}-{self._worker.get('workerid', 'main')}")

    async def _keep(self, outcome: Outcome) -> None:
        if outcome.row is not None:
            await self.journal.keep(outcome.row.line().encode())

    @cached_property
    def _run(self) -> str:
        return str(self._worker.get("testrunuid") or uuid4().hex)

    @cached_property
    def _stored_rows(self) -> StoredRows:
        from rag_harness.engine.stored import StoredRows

        settings = self._session.settings
        stored = StoredRows(settings.path(settings.output), self._run, settings.overwrite)
        stored.look_for_the_dead()
        return stored

    def result(self, item: pytest.Item, trial: Trial, pipeline: Any) -> Shipped:
        """Return the result of ``trial``.

        Raises:
            PrerequisiteError: the index or a model cannot be had.
            CriticalError: the trial met something that no later trial can get past.
        """
        if trial.trial_id in self._forgotten:
            # A plugin runs failed tests again, say: the row is in the journal.
            return Shipped(self._stored_rows.reread(self.journal.file, trial.experiment, trial.case.query.query_id))
        if self._worker and self._is_of_a_new_batch(item):
            # A worker that died has left its batches to the others, and in its journal what it had done of them.
            self._stored_rows.look_for_the_dead()
        self._check_only_pipeline(item, trial)
        stored = self.stored(trial, pipeline)
        if stored is not None:
            return Shipped(*stored)
        self._submit(trial, pipeline)
        self._run_ahead(item, trial, pipeline)
        outcome = self._outcome(trial.trial_id, item.session.items)
        if outcome.row is None:
            item.stash[NOT_RUN] = (trial.id.experiment, trial.id.query_id)
            pytest.skip(f"not run: {outcome.not_run}")
        if outcome.critical:
            item.session.shouldstop = f"rag_harness: {outcome.row.why}"
        return Shipped(outcome.row, error=outcome.error if self.inline else None)

    def _check_only_pipeline(self, item: pytest.Item, trial: Trial) -> None:
        """Refuse two pipelines under one name: they would share their rows."""
        fixture = own_fixture(item)
        known = self._fixture_of.setdefault(trial.experiment, fixture)
        if fixture is not known or (fixture is not None and fixture.params is not None):
            raise PrerequisiteError(
                f"Experiment {trial.experiment!r} has several pipelines in this run (rag_pipeline has parameters or "
                f"several definitions). Give each its own name: @pytest.mark.rag_experiment(…)."
            )

    def _outcome(self, trial_id: str, items: Iterable[pytest.Item]) -> Outcome:
        """Return what a trial came to; the engine forgets it when the last of its tests has asked."""
        if not self._tests:
            self._tests.update(trial.trial_id for each in items if (trial := trial_of(each)) is not None)
        outcome = self.engine.result(trial_id)
        self._tests[trial_id] -= 1
        if self._tests[trial_id] <= 0 and outcome.row is not None and outcome.row.ok:
            self.engine.forget(trial_id)
            self._forgotten.add(trial_id)
        return outcome

    def stored(self, trial: Trial, pipeline: Any) -> tuple[ExperimentResult, bool] | None:
        """Return the row of a trial that need not be run, and whether an earlier run has made it."""
        fingerprint = self._session.fingerprint(trial.experiment, pipeline)
        return self._stored_rows.find(trial.experiment, fingerprint, trial.case.query.query_id)

    def _submit(self, trial: Trial, pipeline: Any) -> None:
        from rag_harness.engine.trial import run_trial

        session = self._session
        if hasattr(pipeline, "retriever") and not self._prepared:
            self._prepared = True
            # Trials that retrieve say themselves what nobody recorded; those that do not, go on.
            with suppress(RecordingMissError), harness_at_work():
                session.parts.prepare([case.query.text for case in session.cases])
        fingerprint, settings = session.fingerprint(trial.experiment, pipeline), session.settings
        self.engine.submit(trial.trial_id, lambda: run_trial(trial, pipeline, settings, fingerprint))

    def _run_ahead(self, item: pytest.Item, trial: Trial, pipeline: Any) -> None:
        """Submit trials of the tests that follow, so many that the engine always has some and memory stays bounded."""
        self._forget_those_before(trial.trial_id, item.session.items)
        more = self._ahead_of(item)
        if more:
            self._upcoming = chain(self._upcoming, ((each, item, pipeline) for each in more))
        while len(self._ahead) < max(_AHEAD, 4 * self._session.share.concurrency):
            following = next(self._upcoming, None)
            if following is None:
                return
            self._submit_ahead(*following)

    def _forget_those_before(self, trial_id: str, items: list[pytest.Item]) -> None:
        """Count the trials up to this one as no longer ahead; tests that were skipped have not asked for theirs."""
        if trial_id not in self._ahead and len(self._ahead) >= _AHEAD:
            positions = {each.trial_id: n for n, item in enumerate(items) if (each := trial_of(item)) is not None}
            late = [each for each in self._ahead if positions.get(each, 0) > positions.get(trial_id, 0)]
            self._ahead = dict.fromkeys(late)
        while trial_id in self._ahead:
            del self._ahead[next(iter(self._ahead))]

    def _submit_ahead(self, item: pytest.Item, current: pytest.Item, pipeline: Any) -> None:
        trial, own = trial_of(item), self._pipeline_of(item, current, pipeline)
        if trial is None or own is None or _is_skipped(item):
            return
        if trial.trial_id in self._ahead or trial.trial_id in self._forgotten:
            return
        if self.stored(trial, own) is None:
            self._submit(trial, own)
            self._ahead[trial.trial_id] = None

    def _pipeline_of(self, item: pytest.Item, current: pytest.Item, pipeline: Any) -> Any:
        """Return the pipeline that ``item`` will get: None where a fixture of the user's own has yet to make it."""
        trial, fixture = trial_of(item), own_fixture(item)
        if trial is None:
            return None
        if fixture is None:
            return self._session.pipeline(trial.experiment)
        shared = fixture.params is None and fixture.scope == "session"
        return pipeline if shared and fixture is own_fixture(current) else None

    def _ahead_of(self, item: pytest.Item) -> Iterable[pytest.Item]:
        """Return tests whose trials this process may now run ahead of time, in their order."""
        items = item.session.items
        if not self._worker:
            # Once for each fixture of the user's own: what it makes is known when its first test has come.
            fixture = own_fixture(item)
            if fixture in self._walked:
                return ()
            self._walked.add(fixture)
            return islice(items, items.index(item) + 1, None)
        batch_of = self._batch_of(items)
        mine = {batch_of.get(item.nodeid)}
        if self.next_item is not None:
            mine.add(batch_of.get(self.next_item.nodeid))
        new = mine - self._batches_ahead
        self._batches_ahead |= new
        if not new:
            return ()
        self._stored_rows.look_for_the_dead()
        return [each for each in items if batch_of.get(each.nodeid) in new]

    def _is_of_a_new_batch(self, item: pytest.Item) -> bool:
        """Return whether work was just handed out; without batches that may be so at every test."""
        batch = self._batch_of(item.session.items).get(item.nodeid)
        return batch is None or batch not in self._batches_ahead

    def _batch_of(self, items: list[pytest.Item]) -> dict[str, str]:
        if not self._worker.get("rag_batches"):
            return {}
        if not self._batches:
            concurrency = self._session.settings.concurrency
            self._batches.update(plan([each.nodeid for each in items], self._session.workers, concurrency))
        return self._batches

    def stop(self) -> None:
        """Make no more calls: the tests are over."""
        if "engine" in vars(self):
            self.engine.stop()

    def close(self, *finally_: Any) -> None:
        """Stop the engine; what came back is in the journal, which is let go."""
        if "engine" in vars(self):
            self.engine.close(*finally_)
        if "journal" in vars(self):
            self.journal.close()


def _is_skipped(item: pytest.Item) -> bool:
    """Return whether a mark will skip the test, so that nobody pays for its trial."""
    try:
        from _pytest.skipping import evaluate_skip_marks
    except ImportError:
        return any(item.iter_markers("skip"))
    try:
        return evaluate_skip_marks(item) is not None
    except Exception:
        return True  # a condition that cannot be evaluated: the test itself will say so


def own_fixture(item: pytest.Item) -> Any:
    """Return the user's own definition of ``rag_pipeline`` that ``item`` gets, None where it gets the plugin's."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.get("rag_pipeline", ())  # noqa: B009
    return fixtures[-1] if len(fixtures) > 1 else None


def trial_of(item: pytest.Item) -> Trial | None:
    """Return the trial that a test is about, None for other tests."""
    callspec = getattr(item, "callspec", None)
    trial: Trial | None = callspec.params.get("rag_trial") if callspec else None
    return trial
