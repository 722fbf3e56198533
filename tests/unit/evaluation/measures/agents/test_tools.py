"""Measures of calls of tools: by hand, against promptfoo's rules, and against ragas where it is installed."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case
from rag_harness.evaluation.measures import RowMeasure, measure_named
from rag_harness.evaluation.measures.agents import tools_demanded
from rag_harness.records.row import ExperimentResult
from tests.unit.evaluation.measures.agents.trials import did, expecting, needing, search, tool
from tests.unit.ragas_python import needs_ragas, said_by_ragas

NAMES = ("tool_recall", "tool_precision", "tool_order", "tool_order_exact", "tool_args", "tool_args_exact")


def value(name: str, case: Case, row: ExperimentResult) -> float | str | None:
    """Return a value, or why there is none."""
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    if why := measure.applies(case):
        return f"n/a: {why}"
    found = measure.score(case, row)
    return found.value if found.value is not None else found.reason


def calls(text: str) -> list[dict[str, Any]]:
    return [tool(each) for each in text.split()]


@pytest.mark.parametrize(
    ("expected", "made", "recall", "precision", "order", "exact"),
    [
        ("price", "price", 1, 1, 1, 1),
        ("price stock", "stock price", 1, 1, 0, 0),
        ("price stock", "price help stock", 1, 2 / 3, 1, 0),
        ("price price", "price", 1 / 2, 1, 0, 0),
        ("price", "price price", 1, 1 / 2, 1, 0),
        ("price stock", "", 0, 0, 0, 0),
        ("price stock price", "price price stock price", 1, 3 / 4, 1, 0),
    ],
)
def test_names(expected: str, made: str, recall: float, precision: float, order: float, exact: float) -> None:
    case, row = expecting(*expected.split()), did(*calls(made), {"name": "generate", "kind": "generate", "ms": 1.0})
    found = [value(name, case, row) for name in NAMES[:4]]
    assert found == pytest.approx([recall, precision, order, exact])


def test_where_no_tool_is_expected_only_a_call_is_wrong() -> None:
    idle, busy = did({"name": "generate", "kind": "generate", "ms": 1.0}), did(tool("price"))
    none = expecting()
    assert [value(name, none, idle) for name in ("tool_precision", "tool_order_exact")] == [1.0, 1.0]
    assert [value(name, none, busy) for name in ("tool_precision", "tool_order_exact")] == [0.0, 0.0]
    for name in ("tool_recall", "tool_order", "tool_args", "tool_args_exact"):
        assert value(name, none, busy) == "n/a: no tool is expected", name


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_says_is_not_measured(name: str) -> None:
    assert value(name, needing("a.md"), did(tool("price"))) == "n/a: the question names no tools"
    assert value(name, expecting(("price", {"sku": 1})), did()) == "its pipeline tells no steps"


@pytest.mark.parametrize("name", NAMES)
def test_a_flat_trace_is_no_agent_that_called_nothing(name: str) -> None:
    flat = did({"name": "generate", "ms": 1.0})
    assert value(name, expecting(("price", {"sku": 1})), flat) == (
        "its trace tells no steps, only stages (a StepTrace tells them)"
    )


@pytest.mark.parametrize(
    ("stated", "given", "partial", "exact"),
    [
        ({"sku": "T-18"}, {"sku": "T-18"}, 1, 1),
        ({"sku": "T-18"}, {"sku": "T-18", "zone": 1}, 1, 0),
        ({"sku": "T-18", "zone": 1}, {"sku": "T-18"}, 1 / 2, 0),
        ({"n": 1}, {"n": 1.0}, 1, 1),
        ({"n": 1}, {"n": "1"}, 0, 0),  # ragas compares them as texts, and they are equal
        ({"n": 1}, {"n": True}, 0, 0),
        ({"n": None}, {}, 0, 0),
        ({"where": {"zone": 1}}, {"where": {"zone": 1, "city": "Bonn"}}, 1, 0),
        ({"ids": [1, 2]}, {"ids": [1, 2]}, 1, 1),  # ragas' ToolCallF1 raises on a list
        ({"ids": [1, 2]}, {"ids": [1, 2, 3]}, 0, 0),
        ({"ids": [{"a": 1}]}, {"ids": [{"a": 1, "b": 2}]}, 1, 0),
        ({}, {}, 1, 1),
        ({}, {"sku": "T-18"}, 0, 0),
    ],
)
def test_arguments(stated: Any, given: Any, partial: float, exact: float) -> None:
    case, row = expecting(("price", stated)), did(tool("price", given))
    assert [value("tool_args", case, row), value("tool_args_exact", case, row)] == pytest.approx([partial, exact])


def test_each_expected_call_is_held_against_one_call_the_most_alike_first() -> None:
    case = expecting(("price", {"sku": "a"}), ("price", {"sku": "a", "zone": 1}), ("stock", {"sku": "a"}))
    row = did(tool("price", {"sku": "a", "zone": 1}), tool("price", {"sku": "a"}))
    assert value("tool_args", case, row) == pytest.approx(2 / 3)
    assert value("tool_args_exact", case, row) == pytest.approx(2 / 3)
    once = did(tool("price", {"sku": "a", "zone": 1}))
    assert value("tool_args", case, once) == pytest.approx(1 / 3)  # one call is not two


def test_arguments_that_are_not_told_are_not_compared() -> None:
    case = expecting(("price", {"sku": "a"}))
    for given in ("price of a", "[1]", "{" * 3000, "[" * 19_999):
        assert value("tool_args", case, did(tool("price", given))) == "a call does not tell its arguments"
    assert value("tool_args", case, did(tool("price", '{"sku": "a"}'))) == 1.0
    assert value("tool_args", case, did(tool("other", "x"), tool("price", {"sku": "a"}))) == 1.0
    assert value("tool_args", expecting("price"), did(tool("price"))) == "n/a: no arguments are expected"


def test_a_search_is_a_call_where_the_case_expects_a_tool_of_its_name() -> None:
    row = did(search("lamp", "a.md#0"), tool("price"))
    assert value("tool_order_exact", expecting("search", "price"), row) == 1.0
    assert value("tool_args", expecting(("search", {"query": "lamp"})), row) == 1.0
    assert value("tool_precision", expecting("price"), row) == 1.0


def test_other_expected_calls_are_another_figure() -> None:
    assert tools_demanded([needing("a.md")]) == {}
    one, other = (tools_demanded([expecting(("price", {"sku": sku}))]) for sku in "ab")
    assert set(one) == {*NAMES, "needless_searches"}
    assert one["tool_args"] != other["tool_args"]


def _drawn(chance: random.Random) -> tuple[list[Any], list[Any]]:
    """Return expected and made calls, with texts as arguments: there ragas compares as we do."""
    possible = [(name, {"x": x, "y": y}) for name in "ab" for x in "12" for y in "12"]
    expected = chance.sample(possible, chance.randint(1, 4))
    same_names = [(name, chance.choice(possible)[1]) for name, _ in expected]
    return expected, chance.choice([expected, same_names, chance.sample(possible, chance.randint(1, 4))])


@needs_ragas
def test_values_are_those_of_ragas_where_it_says_the_same() -> None:
    drawn = [_drawn(random.Random(seed)) for seed in range(300)]
    theirs = said_by_ragas(Path(__file__).with_name("ragas_tools.py"), drawn)
    positional = 0
    for (expected, made), (accuracy, f1) in zip(drawn, theirs, strict=True):
        case, row = expecting(*expected), did(*(tool(*each) for each in made))
        exact = value("tool_args_exact", case, row)
        if len({json.dumps(each) for each in made}) == len(made):  # F1 is over sets
            assert isinstance(exact, float)
            assert 2 * exact * len(expected) / (len(expected) + len(made)) == pytest.approx(f1, abs=1e-4)
        names = Counter(name for name, _ in expected)
        if value("tool_order_exact", case, row) == 0.0:
            assert accuracy == 0.0
        elif max(names.values()) == 1:  # of calls of one name ragas compares the first with the first
            positional += 1
            assert value("tool_args", case, row) == pytest.approx(accuracy)
    assert positional > 30
