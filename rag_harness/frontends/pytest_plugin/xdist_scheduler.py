"""The scheduler for xdist that gives workers trials in batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.scheduler.loadscope import LoadScopeScheduling

from rag_harness.frontends.pytest_plugin.activation import wake
from rag_harness.frontends.pytest_plugin.options import is_used
from rag_harness.frontends.pytest_plugin.stash import RUN_ALONE
from rag_harness.frontends.pytest_plugin.workers import ALONE, plan


def wants_batches(config: pytest.Config) -> bool:
    """Return whether trials come in batches: the suite uses the plugin, and no other distribution was chosen."""
    return is_used(config) and config.getoption("dist", "no") == "load"


def make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Return the scheduler by batches; None leaves the choice to xdist."""
    if wants_batches(config):
        return BatchScheduling(config, log, wake(config).settings.concurrency)
    by_scope = BY_SCOPE.get(config.getoption("dist", "no")) if is_used(config) else None
    return None if by_scope is None else by_scope(config, log)


class _Outliving:
    """Scheduling by scope that does not hand out again the test that has killed its worker, as xdist's own does."""

    assigned_work: OrderedDict[Any, dict[str, dict[str, bool]]]
    registered_collections: Mapping[Any, list[str]]

    def remove_node(self, node: Any) -> str | None:
        """Take back a worker's tests, and return the one that has killed it."""
        workload = self.assigned_work[node]
        killer = next((nodeid for work in workload.values() for nodeid, done in work.items() if not done), None)
        for scope, work in list(workload.items()):
            if killer in work:
                work[killer] = True
            if all(work.values()):
                del workload[scope]  # a worker that is handed no test would wait for ever
        super().remove_node(node)  # type: ignore[misc]
        return killer

    def _reschedule(self, node: Any) -> None:
        """Hand out nothing to a worker that is to replace a dead one until it has collected: xdist raises."""
        if node in self.registered_collections:
            super()._reschedule(node)  # type: ignore[misc]


class _ByFile(_Outliving, LoadFileScheduling):  # type: ignore[misc]
    """``--dist=loadfile``."""


class _ByScope(_Outliving, LoadScopeScheduling):  # type: ignore[misc]
    """``--dist=loadscope``."""


class _ByGroup(_Outliving, LoadGroupScheduling):  # type: ignore[misc]
    """``--dist=loadgroup``."""


BY_SCOPE: Mapping[str, type[LoadScopeScheduling]] = {"loadfile": _ByFile, "loadscope": _ByScope, "loadgroup": _ByGroup}
"""The schedulers of distributions that a user may choose."""


class BatchScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's scheduling by scope, with a batch of trials as the scope."""

    def __init__(self, config: pytest.Config, log: Any, concurrency: int) -> None:
        super().__init__(config, log)
        self._concurrency = concurrency
        self._batch_of: dict[str, str] = {}
        self._alone: set[str] = config.stash.setdefault(RUN_ALONE, set())
        self._positions: dict[Any, dict[str, int]] = {}
        self._reported: set[str] = set()
        config.pluginmanager.register(self)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that is over. Its worker may die before it says so, and then it would be handed out again."""
        if report.when == "teardown":
            self._reported.add(report.nodeid)

    def schedule(self) -> None:
        """Cut the collection into batches, once, before work is handed out."""
        if not self._batch_of and self.collection_is_completed:
            collection = next(iter(self.registered_collections.values()))
            self._batch_of = plan(collection, len(self.nodes), self._concurrency)
            self._send_home()
        super().schedule()

    def _send_home(self) -> None:
        """Shut down workers beyond the number of calls that may be in flight: they could never make a call."""
        for node in list(self.nodes)[self._concurrency :]:
            del self.assigned_work[node]
            node.shutdown()

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid in self._alone else self._batch_of.get(nodeid, nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Take back a worker's tests, and return the one that has killed it, where that is known.

        A worker runs trials ahead of their tests, so each of its tests may be what killed it. They are run again, each
        alone, by workers that come after it: the next death is the fault of the test that is running.
        """
        workload = self.assigned_work.pop(node)
        unfinished = [nodeid for work in workload.values() for nodeid, completed in work.items() if not completed]
        left = [nodeid for nodeid in unfinished if nodeid not in self._reported]
        killer = left.pop(0) if left and left[0] in self._alone else None
        self._alone |= set(left)
        self._forget(set(left))
        again = {nodeid: {nodeid: False} for nodeid in left}
        waiting = OrderedDict(self.workqueue)
        self.workqueue: OrderedDict[str, dict[str, bool]] = OrderedDict([*again.items(), *waiting.items()])
        for other in list(self.assigned_work):
            self._reschedule(other)
        return killer

    def _forget(self, again: set[str]) -> None:
        """Take back that a test has passed whose row is lost: its worker died before the report with the row came."""
        if terminal := self.config.pluginmanager.get_plugin("terminalreporter"):
            passed = terminal.stats.get("passed", [])
            passed[:] = [report for report in passed if report.nodeid not in again]

    def _reschedule(self, node: Any) -> None:
        """Keep at least two tests waiting at ``node``: a worker runs a test only when it knows the next one.

        One that is to replace a dead worker gets its tests once it has collected.
        """
        if node not in self.registered_collections:
            return
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            batch = self._next_for(node)
            if batch is None:
                node.shutdown()
                return
            self._assign(node, batch)

    def _next_for(self, node: Any) -> str | None:
        """Return the next batch that a worker may have: those that are run alone are for workers that know of them."""
        knows = set(ALONE.sent(node))
        return next((batch for batch in self.workqueue if batch not in self._alone or batch in knows), None)

    def _assign_work_unit(self, node: Any) -> None:
        self._assign(node, next(iter(self.workqueue)))

    def _assign(self, node: Any, batch: str) -> None:
        """Hand a batch to ``node``. xdist searches a list for each test, which takes minutes at 20,000 tests."""
        work = self.workqueue.pop(batch)
        self.assigned_work.setdefault(node, {})[batch] = work
        positions = self._positions_of(node)
        node.send_runtest_some([positions[nodeid] for nodeid, completed in work.items() if not completed])

    def _positions_of(self, node: Any) -> dict[str, int]:
        if node not in self._positions:
            self._positions[node] = {nodeid: n for n, nodeid in enumerate(self.registered_collections[node])}
        return self._positions[node]
