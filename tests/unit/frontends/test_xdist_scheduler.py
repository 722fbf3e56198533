"""Tests of a worker that has died are handed out again, but for those whose reports are there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from rag_harness.frontends.pytest_plugin.xdist_scheduler import BY_SCOPE, BatchScheduling


class Node:
    """A worker that knows of a test that is run alone."""

    shutting_down = False
    workerinput: Mapping[str, Any] = {"rag_alone": ["a"]}


def test_a_test_that_was_reported_before_its_worker_died_is_not_run_again() -> None:
    scheduling: Any = object.__new__(BatchScheduling)
    scheduling.workqueue, scheduling.assigned_work = (
        OrderedDict(),
        {"gw0": {"batch": {"a": True, "b": False, "c": False}}},
    )
    scheduling._alone, scheduling._reported = set[str](), set[str]()
    for when in ("setup", "call", "teardown"):
        scheduling.pytest_runtest_logreport(cast("Any", SimpleNamespace(nodeid="b", when=when)))
    scheduling.pytest_runtest_logreport(cast("Any", SimpleNamespace(nodeid="c", when="call")))
    passed = [SimpleNamespace(nodeid=nodeid) for nodeid in "abc"]
    terminal = SimpleNamespace(stats={"passed": passed})
    scheduling.config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: terminal))
    assert scheduling.remove_node("gw0") is None
    assert [*scheduling.workqueue] == ["c"]
    assert [each.nodeid for each in passed] == ["a", "b"], "c passed, its row is lost, and it runs again"


@pytest.mark.parametrize("kind", [BatchScheduling, *BY_SCOPE.values()])
def test_a_worker_that_has_not_collected_yet_is_handed_nothing(kind: type[LoadScopeScheduling]) -> None:
    scheduling: Any = object.__new__(kind)
    new, dead = Node(), Node()
    scheduling.workqueue, scheduling.registered_collections = OrderedDict(), {dead: ["a", "b"]}
    scheduling.assigned_work = {dead: {"batch": {"a": False, "b": False}}, new: {}}
    scheduling._alone, scheduling._reported, scheduling._positions = set[str](), set[str](), {}
    scheduling.config, scheduling.log = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: None)), print
    scheduling.workqueue["waits"] = {"a": False}
    scheduling.remove_node(dead)
    assert "waits" in scheduling.workqueue, "until somebody can run it"
