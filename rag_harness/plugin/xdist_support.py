"""The scheduler for xdist that hands out trials in batches."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from rag_harness.plugin.activation import wake
from rag_harness.plugin.batches import plan
from rag_harness.plugin.options import is_used


def wants_batches(config: pytest.Config) -> bool:
    """Return whether trials come in batches: the suite uses the plugin, and no other distribution was chosen."""
    return is_used(config) and config.getoption("dist", "no") == "load"


def make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Return the scheduler by batches; None leaves the choice to xdist."""
    if not wants_batches(config):
        return None
    return BatchScheduling(config, log, wake(config).settings.concurrency)


class BatchScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's scheduling by scope, with a batch of trials as the scope."""

    def __init__(self, config: pytest.Config, log: Any, concurrency: int) -> None:
        super().__init__(config, log)
        self._concurrency = concurrency
        self._batch_of: dict[str, str] = {}
        self._positions: dict[Any, dict[str, int]] = {}

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
        return self._batch_of.get(nodeid, nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Take back a worker's batches, except finished ones: a worker that is handed no test would wait for ever."""
        workload = self.assigned_work[node]
        for batch in [batch for batch, work in workload.items() if all(work.values())]:
            del workload[batch]
        crashed: str | None = super().remove_node(node)
        return crashed

    def _reschedule(self, node: Any) -> None:
        """Keep at least two tests waiting at ``node``: a worker runs a test only when it knows the next one."""
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            self._assign_work_unit(node)
        if not self.workqueue and not node.shutting_down:
            node.shutdown()

    def _assign_work_unit(self, node: Any) -> None:
        """Hand the next batch to ``node``. xdist searches a list for each test, which takes minutes at 20,000 tests."""
        batch, work = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[batch] = work
        positions = self._positions_of(node)
        node.send_runtest_some([positions[nodeid] for nodeid, completed in work.items() if not completed])

    def _positions_of(self, node: Any) -> dict[str, int]:
        if node not in self._positions:
            self._positions[node] = {nodeid: n for n, nodeid in enumerate(self.registered_collections[node])}
        return self._positions[node]
