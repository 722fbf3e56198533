"""An id of a test is cut where an experiment ends and a query begins, though both may have hyphens."""

from __future__ import annotations

import pytest

from rag_harness.core.types import TrialId
from rag_harness.frontends.pytest_plugin.items import KnownTrials, param_id, trial_ids

QUERIES = {"q1", "own-q1", "q_direct_001"}
KNOWN = KnownTrials(["e3", "e3-plain"], lambda: QUERIES, lambda: ["g1", "a-b.c"])


def read(*ids: str, function: str = "t.py::test_a") -> list[TrialId | None]:
    nodes = [f"{function}[{text}]" for text in ids]
    found = trial_ids(nodes, KNOWN)
    return [found.get(node) for node in nodes]


@pytest.mark.parametrize(
    ("text", "trial"),
    [
        ("e3-q_direct_001", TrialId("e3", "q_direct_001")),
        ("e3-plain-q1", TrialId("e3-plain", "q1")),
        ("a-name-of-my-own-q_direct_001", TrialId("a-name-of-my-own", "q_direct_001")),
        ("golden-a-b.c", TrialId("golden", "a-b.c")),
        ("slow-e3-q1", TrialId("slow-e3", "q1")),
        ("e3-q1-fast", TrialId("e3", "q1")),
        ("e3-nothing", None),
        ("golden-nothing", None),
        ("q1", None),
        ("-q1", None),
        ("2", None),
    ],
)
def test_ids_of_one_meaning(text: str, trial: TrialId | None) -> None:
    assert read(text) == [trial]


def test_a_test_without_parameters_is_no_trial() -> None:
    assert param_id("t.py::test_a") == ""
    assert trial_ids(["t.py::test_a"], KNOWN) == {}


def test_where_two_cuts_are_possible_the_other_tests_of_the_function_decide() -> None:
    mine = read("mine-q1", "mine-own-q1", "mine-q_direct_001")
    assert mine == [TrialId("mine", "q1"), TrialId("mine", "own-q1"), TrialId("mine", "q_direct_001")]
    own = read("mine-own-own-q1", "mine-own-q1", "mine-own-q_direct_001")
    assert own == [TrialId("mine-own", "own-q1"), TrialId("mine-own", "q1"), TrialId("mine-own", "q_direct_001")]


def test_each_function_has_its_own_experiments() -> None:
    nodes = ["t.py::test_a[mine-q_direct_001]", "t.py::test_a[mine-own-q1]", "t.py::test_b[mine-own-q_direct_001]"]
    nodes.append("t.py::test_b[mine-own-q1]")
    found = trial_ids(nodes, KNOWN)
    assert found[nodes[1]] == TrialId("mine", "own-q1")
    assert found[nodes[3]] == TrialId("mine-own", "q1")


def test_files_are_read_where_an_id_has_a_hyphen_and_not_before() -> None:
    def never() -> list[str]:
        raise AssertionError("nobody needs to know")

    assert trial_ids(["t.py::test_a[2]", "t.py::test_b"], KnownTrials(["e3"], never, never)) == {}
