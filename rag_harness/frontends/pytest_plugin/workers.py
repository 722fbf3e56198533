"""Processes of a run under pytest-xdist: which one this is, what they send each other, and batches of trials.

The results of tests go another way: each report carries its own (``trial_report.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rag_harness.core.processes import usable_processors
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.frontends.pytest_plugin.items import param_id

if TYPE_CHECKING:
    import pytest

    from rag_harness.authoring.questions.document_changes import Why
    from rag_harness.core.settings import Settings

T = TypeVar("T")


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is a worker. It writes no result file and prints nothing."""
    return hasattr(config, "workerinput")


def is_controller(config: pytest.Config) -> bool:
    """Return whether this process is the controller of workers."""
    return bool(config.getoption("tx", None))


def worker_count(config: pytest.Config) -> int:
    """Return the number of processes that share this run."""
    return int(_input(config).get("workercount", 1))


def worker_id(config: pytest.Config) -> str:
    """Return the name of this process in its run: ``gw0``, or ``main``."""
    return str(_input(config).get("workerid", "main"))


def run_id(config: pytest.Config) -> str:
    """Return the id that all workers of a run share; empty without workers."""
    return str(_input(config).get("testrunuid") or "")


FEW_TRIALS = 600
"""Trials that one process replays about as soon as two workers, which have to start. They count variants, too, of which
a run often has none."""


def limit_workers(config: pytest.Config, trials: int) -> str:
    """Leave out workers that would make a run slower, before they start; return what to say of it.

    For runs that only compute: each worker imports and reads what the others do, which is most of their work.

    Args:
        config: of the controller.
        trials: how many there are at most; 0 where that is not known.
    """
    specs, most = _alike(config), usable_processors()
    if specs and 0 < trials <= FEW_TRIALS:
        _start_none(config)
        return (
            f"rag: -n {len(specs)} starts no worker here: answers are replayed or computed, and one process is done "
            f"with so few before workers have started"
        )
    if len(specs) <= most:
        return ""
    config.option.tx = specs[:most]
    return (
        f"rag: -n {len(specs)} starts {most} here: answers are replayed or computed, and more workers than processors "
        f"would make that slower"
    )


IN_FLIGHT = 64
"""Calls that one process has in flight as well as several do: of 200 ms each, the least that a model takes."""
_LIGHT = ("embedded", "mock")
"""Families of rerankers that take milliseconds a question."""


def limit_waiting(config: pytest.Config, settings: Settings) -> str:
    """Leave out workers beyond those that calls in flight need, before they start; return what to say of it.

    For runs whose tests wait for models: each worker imports, reads and collects what the others do, and gets a part
    of the calls.
    """
    specs, needed = _alike(config), -(-settings.concurrency // IN_FLIGHT)
    if len(specs) <= needed or settings.engine != "local" or _computes(settings):
        return ""
    if needed > 1:
        config.option.tx = specs[:needed]
        return f"rag: -n {len(specs)} starts {needed} here: tests wait for models, and so many processes have all calls"
    _start_none(config)
    return (
        f"rag: -n {len(specs)} starts no worker here: tests wait for models, and one process has as many calls in "
        f"flight"
    )


def _alike(config: pytest.Config) -> Sequence[str]:
    """Return the workers that are to start; none where one of them is not like the others, as with --tx or each."""
    specs: Sequence[str] = config.getoption("tx", None) or []
    return specs if {*specs} == {"popen"} and config.getoption("dist") != "each" else []


def _start_none(config: pytest.Config) -> None:
    """Let this process run the tests, as with ``-n 0``."""
    config.option.tx, config.option.dist, config.option.numprocesses = [], "no", 0


def _computes(settings: Settings) -> bool:
    """Return whether a model of this machine writes the answers, or reranks what is found with weights of its own."""
    return settings.chat_base_url == EMBEDDED_URL or settings.rerank_model.partition("/")[0] not in _LIGHT


def _input(config: pytest.Config) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(config, "workerinput", {})
    return found


class MessageToWorkers(Generic[T]):
    """A message of the controller to each worker before it starts, in types that xdist can send.

    Args:
        key: of xdist's ``workerinput``.
        unsent: its value in a process that got none.
    """

    def __init__(self, key: str, unsent: T) -> None:
        self._key, self._unsent = key, unsent

    def send(self, node: Any, value: T) -> None:
        """Send it to the worker of ``node``."""
        node.workerinput[self._key] = value

    def sent(self, node: Any) -> T:
        """Return what was sent to the worker of ``node``."""
        found: T = node.workerinput.get(self._key, self._unsent)
        return found

    def received(self, config: pytest.Config) -> T:
        """Return it, in a worker."""
        found: T = _input(config).get(self._key, self._unsent)
        return found


class MessageToController(Generic[T]):
    """A message of a worker to the controller when its session ends, in types that xdist can send.

    Args:
        key: of xdist's ``workeroutput``.
        unsent: its value for a worker that sent none, as one that has crashed.
    """

    def __init__(self, key: str, unsent: T) -> None:
        self._key, self._unsent = key, unsent

    def send(self, config: pytest.Config, value: T) -> None:
        """Send it, in a worker."""
        # A worker whose session did not start has none.
        if hasattr(config, "workeroutput"):
            config.workeroutput[self._key] = value

    def received(self, node: Any) -> T:
        """Return what the worker of ``node`` has sent."""
        found: T = getattr(node, "workeroutput", {}).get(self._key, self._unsent)
        return found


BATCHED = MessageToWorkers("rag_batches", False)
"""Whether trials come in batches."""
ALONE = MessageToWorkers[Sequence[str]]("rag_alone", ())
"""The tests that are run alone, because one of them has killed its worker."""
VERSIONS = MessageToWorkers[Mapping[str, Mapping[str, str]]]("rag_versions", {})
"""For each service its ``version``, or the ``problem`` with it: the controller asks once for all."""
AFFECTED = MessageToWorkers[Mapping[str, Mapping[str, "Why"]]]("rag_affected", {})
"""The questions that --rag-affected-by keeps, by data."""

CPU_SECONDS = MessageToController[tuple[float, float] | None]("rag_cpu_seconds", None)
"""The processor time of a worker before its first test, and after its last."""
USED_RECORDINGS = MessageToController[Sequence[str]]("rag_used_recordings", ())
"""The files of recordings that a worker has used."""
LEFT_OUT = MessageToController("rag_left_out", 0)
"""How many tests --rag-affected-by has left out."""


# Batches of trials: a worker gets a batch at a time and runs its trials ahead of their tests.
#
# Every worker collects every item. A worker that ran ahead through all of them would pay for other workers' calls.
# xdist hands out whole scopes, and here a scope is a batch. The controller and each worker compute the same batches
# from the collected node ids.

_TURN = re.compile(r"#[0-9]{1,4}(?=-|$)")


def trial_batches(nodeids: Sequence[str], size: int) -> dict[str, str]:
    """Return the batch of each node id: ``size`` trials, or conversations, in a row.

    Tests of the same trial stay together. The turns of a conversation stay together because each may need the answers
    before it.
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
