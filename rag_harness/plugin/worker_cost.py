"""Whether the workers of xdist have cost more time than they saved: each of them begins anew what one process would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from rag_harness.work.processors import usable_processors

_CPU = "rag_cpu_seconds"
_LEAST = 0.5
"""Seconds. Less is not worth a line, and within the noise of a machine."""


def lost(began: list[float], tests: float, processors: int) -> float:
    """Return how many seconds workers cost beyond what they saved; below 0 they saved time.

    Workers share the processors, both while they begin and while they test. Calls of models and services are left out:
    they are in flight together in one process as well.

    Args:
        began: seconds of a processor that each worker took before its first test.
        tests: seconds of a processor that all tests took.
        processors: number of processors.
    """
    begin = sum(began) / len(began)
    side_by_side = begin * max(1.0, len(began) / processors) + tests / min(len(began), processors)
    return side_by_side - (begin + tests)


class WorkerCost:
    """Counts the processor time of workers, and says in the controller what it came to."""

    def __init__(self) -> None:
        self._begun = 0.0
        self._began: list[float] = []
        self._tests = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Look at the clock before the first test."""
        self._begun = time.process_time()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller, in a worker."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_CPU] = (self._begun, time.process_time())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn what a worker took. One that has crashed says nothing."""
        if found := getattr(node, "workeroutput", {}).get(_CPU):
            begun, ended = found
            self._began.append(begun)
            self._tests += ended - begun

    def lines(self) -> Iterator[str]:
        """Say that workers have cost time, where they have."""
        processors, workers = usable_processors(), len(self._began)
        if workers > 1 and lost(self._began, self._tests, processors) >= _LEAST:
            yield (
                f"-n {workers} costs time here: to begin took {sum(self._began):.1f} s of {processors} processors, all "
                f"tests {self._tests:.1f} s. Leave -n out: one process has as many calls in flight."
            )
