"""Batches of trials under xdist: a worker gets a batch at a time and runs its trials ahead of their tests.

Every worker collects every item. A worker that ran ahead through all of them would pay for other workers' calls. xdist
hands out whole scopes, and here a scope is a batch. The controller and each worker compute the same batches from the
collected node ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.plugin.trial_ids import param_id

BATCHES_INPUT = "rag_batches"
"""Among what a worker is told at its start: whether trials come in batches."""
ALONE_INPUT = "rag_alone"
"""The same: the tests that are run alone, because one of them has killed its worker."""
_TURN = re.compile(r"#[0-9]{1,4}(?=-|$)")


def trial_batches(nodeids: Sequence[str], size: int) -> dict[str, str]:
    """Return the batch of each node id: ``size`` trials, or conversations, in a row.

    Tests of the same trial stay together, and so do the turns of a conversation: each may need the answers before it.
    """
    together: dict[str, int] = {}
    batch_of: dict[str, str] = {}
    for nodeid in nodeids:
        conversation = _conversation(nodeid)
        if not conversation:
            batch_of[nodeid] = nodeid.split("::", 1)[0]
        else:
            number = together.setdefault(conversation, len(together))
            batch_of[nodeid] = f"rag-batch-{number // size}"
    return batch_of


def _conversation(nodeid: str) -> str:
    """Return what is common to the trials of a conversation; for another trial its own id, and empty without one."""
    return _TURN.sub("", param_id(nodeid))


def batch_size(trials: int, workers: int, concurrency: int) -> int:
    """Return how many trials a worker gets at once: enough to fill its share of calls, and about 4 turns each."""
    return max(concurrency, -(-trials // (workers * 4)), 1)


def plan(nodeids: Sequence[str], workers: int, concurrency: int) -> dict[str, str]:
    """Return the batch of each node id for a run of ``workers``."""
    trials = len({trial for nodeid in nodeids if (trial := _conversation(nodeid))})
    return trial_batches(nodeids, batch_size(trials, workers, -(-concurrency // workers)))
