"""Runs trials ahead of their tests: enough to keep the engine busy, and few enough to keep memory bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rag_harness.errors import CriticalError, PrerequisiteError
from rag_harness.plugin.batches import ALONE_INPUT, BATCHES_INPUT, plan
from rag_harness.plugin.items import is_skipped, made_in, own_fixture, trial_id_of, trial_of
from rag_harness.types import GOLDEN, TrialId

if TYPE_CHECKING:
    import pytest

    from rag_harness.engine.stored import Stored
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.plugin.session import RagSession
    from rag_harness.protocols import Experiment
    from rag_harness.work.once import Once

MOST_AHEAD = 256
"""How many trials may be submitted before their tests come. It bounds memory, and what a stopped run has paid for."""
LONGEST_ROW = 8
"""How many turns of a conversation count as one trial there, where each is asked after the one before it."""
FEWEST_AHEAD = 4
"""The same limit, at least, for a run that may stop early: trials beyond the stop are paid for and not used."""


class Ahead:
    """Walks through the tests that follow the current one.

    Args:
        session: state of the run.
        stored: looks for what dead processes have left, before a batch that one of them may have begun.
        submit: submits a trial; returns False if it need not be run.
    """

    def __init__(self, session: RagSession, stored: Once[Stored], submit: Callable[[Trial, Experiment], bool]) -> None:
        self._session, self._stored, self._submit = session, stored, submit
        self._worker: dict[str, Any] = getattr(session.config, "workerinput", {})
        self._alone = frozenset(self._worker.get(ALONE_INPUT, ()))
        """Tests of which one has killed a worker: none is run beside another."""
        self.next_item: pytest.Item | None = None
        self._batches: dict[str, str] = {}
        self._batches_begun: set[str | None] = {None}
        self._walked: set[Any] = set()
        self._upcoming: Iterator[tuple[pytest.Item, pytest.Item, Experiment]] = iter(())
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
            following = next(self._upcoming, None)
            if following is None:
                return
            self._submit_ahead(*following)

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

    def _submit_ahead(self, item: pytest.Item, current: pytest.Item, experiment: Experiment) -> None:
        trial_id = trial_id_of(item)
        if trial_id is None or trial_id in self._submitted or trial_id.experiment in self._unusable or is_skipped(item):
            return
        try:
            found = self._trial(item, trial_id, current, experiment)
            if found is not None and self._submit(*found):
                row = self._submitted[trial_id] = self._row_of(trial_id)
                self._rows[row] += 1
        except (CriticalError, PrerequisiteError):
            if trial_id.experiment != GOLDEN:
                raise
            # The golden suite's own first test reports this error. The current test is about something else.
            self._unusable.add(GOLDEN)

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
        if not self._worker:
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
        if not self._worker.get(BATCHES_INPUT):
            return {}
        if not self._batches:
            concurrency = self._session.settings.concurrency
            self._batches.update(plan([item.nodeid for item in items], self._session.workers, concurrency))
            self._batches.update({nodeid: nodeid for nodeid in self._alone})
        return self._batches
