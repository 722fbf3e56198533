"""Under xdist: the scheduler that hands out trials in batches."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from rag_harness.plugin.batches import plan
from rag_harness.plugin.options import is_used
from rag_harness.plugin.session import SESSION


def wants_batches(config: pytest.Config) -> bool:
    """Return whether this run hands out batches: the suite uses the plugin, and nobody chose another distribution."""
    return is_used(config) and config.getoption("dist", "no") == "load"


def make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Return the scheduler by batches, None to leave the choice to xdist."""
    if not wants_batches(config):
        return None
    return BatchScheduling(config, log, config.stash[SESSION].settings.concurrency)


class BatchScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's scheduling by scope, with a batch of trials as the scope."""

    def __init__(self, config: pytest.Config, log: Any, concurrency: int) -> None:
        super().__init__(config, log)
        self._concurrency = concurrency
        self._batch_of: dict[str, str] = {}

    def schedule(self) -> None:
        """Cut the collection into batches, once, before work is handed out."""
        if not self._batch_of and self.collection_is_completed:
            collection = next(iter(self.registered_collections.values()))
            self._batch_of = plan(collection, len(self.nodes), self._concurrency)
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._batch_of.get(nodeid, nodeid)
