"""Workers that take longer to begin than they save are named, and no others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rag_harness.frontends.pytest_plugin.progress import WorkerCost, lost


@pytest.mark.parametrize(
    ("began", "tests", "processors", "costs"),
    [
        ([1.5, 1.5, 1.5, 1.5], 1.0, 2, True),  # 3 s to begin in place of 1.5, to save half a second
        ([1.5, 1.5, 1.5, 1.5], 30.0, 2, False),
        ([1.5, 1.5], 0.1, 2, False),  # side by side, on a processor each
        ([1.0, 1.0], 5.0, 1, True),  # one processor saves nothing
    ],
)
def test_what_workers_cost(began: list[float], tests: float, processors: int, costs: bool) -> None:
    assert (lost(began, tests, processors) > 0) is costs


def test_it_is_said_of_the_workers_that_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.frontends.pytest_plugin.progress.usable_processors", lambda: 2)
    cost = WorkerCost()
    for told in [(1.5, 1.8), (1.5, 1.7), (1.4, 1.7), (1.6, 1.8)]:
        cost.pytest_testnodedown(SimpleNamespace(workeroutput={"rag_cpu_seconds": told}))
    cost.pytest_testnodedown(SimpleNamespace())  # it crashed
    assert [*cost.lines()] == [
        "-n 4 costs time here: to begin took 6.0 s of 2 processors, all tests 1.0 s. Leave -n out: one process has as "
        "many calls in flight."
    ]
    monkeypatch.setattr("rag_harness.frontends.pytest_plugin.progress.usable_processors", lambda: 8)
    assert [*cost.lines()] == []
