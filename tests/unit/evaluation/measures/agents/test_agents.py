"""Measures of an agent's searches and calls of tools."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures import RowMeasure, measure_named
from rag_harness.evaluation.measures.agents import tools_demanded
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import parse_gate
from tests.unit.evaluation.measures.agents.trials import did, expecting, needing, search, tool
from tests.unit.ragas_python import needs_ragas, said_by_ragas

# Measures of searches, on trials whose values are known by hand. What a row does not tell is not measured.

BOTH = needing("returns.md", "refunds.md")
NOTHING: dict[str, Any] = {"retrieved_chunks": [], "candidates": []}
LOOKED = did(
    search("return a lamp", "returns.md#0", "returns.md#1"),
    tool("page", {"name": "returns.md"}),
    search("refund", "refunds.md#0", "returns.md#0"),
    search("Refund?", "refunds.md#0", "returns.md#0"),
)


def score(name: str, row: ExperimentResult, case: Case = BOTH) -> Any:
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    assert measure.applies(case) == ""
    return measure.score(case, row)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 4.0),
        ("searches", 3.0),
        ("search_novelty", 1 / 4),  # of four chunks of the later two, one is new
        ("repeated_searches", 1 / 3),
        ("recall_by_step@1", 1 / 2),
        ("recall_by_step@2", 1.0),
        ("recall_by_step@9", 1.0),
        ("searches_after_evidence", 1 / 3),
    ],
)
def test_values_of_a_trial_that_is_known(name: str, value: float) -> None:
    assert score(name, LOOKED).value == pytest.approx(value)


def test_what_each_search_has_brought_is_in_the_detail() -> None:
    assert score("search_novelty", LOOKED).detail == {"new": [2, 1, 0]}
    assert score("recall_by_step@1", LOOKED).detail == {"by_step": [0.5, 1.0, 1.0]}


def test_a_search_that_finds_nothing_brings_nothing() -> None:
    row = did(search("a", "returns.md#0"), search("b"))
    assert score("search_novelty", row).value == 0.0
    assert score("recall_by_step@2", did(search("b"), **NOTHING)).value == 0.0


def test_who_never_searches_has_found_nothing() -> None:
    row = did(tool("page"), **NOTHING)
    assert (score("searches", row).value, score("recall_by_step@3", row).value) == (0.0, 0.0)
    for name in ("search_novelty", "repeated_searches"):
        found = score(name, row)
        assert (found.value, found.undefined) == (None, True), name
    assert score("searches_after_evidence", row).value == 1.0


def test_without_all_the_evidence_every_search_was_in_vain() -> None:
    """0 would say that the agent stopped in time, and without a value it would leave the mean for finding nothing."""
    found = score("searches_after_evidence", did(search("a", "returns.md#0"), search("b", "lamps.md#0")))
    assert (found.value, found.undefined, found.reason) == (1.0, False, "its searches do not find all that is needed")


@pytest.mark.parametrize(
    "name", ["steps", "searches", "search_novelty", "repeated_searches", "recall_by_step@1", "searches_after_evidence"]
)
def test_a_row_without_steps_is_not_measured(name: str) -> None:
    asks = {"name": "ask", "ms": 1.0, "calls": [{"role": "service", "model": ""}]}
    for row, why in ((did(), "its pipeline tells no steps"), (did(asks), "its service does not tell its steps")):
        found = score(name, row)
        assert (found.value, found.reason, found.undefined) == (None, why, False)


FLAT = "its trace tells no steps, only stages (a StepTrace tells them)"


@pytest.mark.parametrize(
    "name",
    ["steps", "searches", "search_novelty", "repeated_searches", "recall_by_step@1", "searches_after_evidence"],
)
@pytest.mark.parametrize("stages", ["retrieve generate", "generate", "ask"])
def test_a_flat_trace_tells_no_steps_so_nothing_is_said_of_them(name: str, stages: str) -> None:
    """Its stages are sums by name: a lone one called generate does not say that nothing was searched."""
    found = score(name, did(*({"name": each, "ms": 3.0} for each in stages.split()), **NOTHING))
    assert (found.value, found.reason, found.undefined) == (None, FLAT, False)


def test_a_stage_without_a_kind_beside_steps_may_be_several_searches() -> None:
    found = score("searches", did({"name": "retrieve", "ms": 3.0}, tool("price")))
    assert (found.value, found.undefined) == (None, False)
    assert "may be several searches" in found.reason


def test_a_step_with_its_query_or_its_hits_needs_no_kind() -> None:
    asks = {"name": "retrieve", "ms": 1.0, "input": "lamp"}
    assert score("steps", did(asks, **NOTHING)).value == 1.0
    assert score("searches", did(asks, **NOTHING)).value == 1.0


def test_hits_that_are_kept_from_the_row_are_not_taken_for_none() -> None:
    hidden = did(search("a"), search("b"))  # the row has candidates, so something was found
    for name in ("search_novelty", "recall_by_step@1", "searches_after_evidence"):
        assert score(name, hidden).reason == "no search tells its hits", name
    assert score("searches", hidden).value == 2.0
    assert score("search_novelty", did(search("a"), search("b"), **NOTHING)).value == 0.0


@pytest.mark.parametrize("name", ["searches", "search_novelty", "recall_by_step@1", "needless_searches"])
def test_chunks_that_no_step_has_searched_for_are_not_taken_for_no_search(name: str) -> None:
    case = needing(tools=()) if name == "needless_searches" else BOTH
    kept: tuple[dict[str, Any], ...] = ({}, {"retrieved_chunks": []}, {"candidates": []})  # the row has one, or both
    for some in kept:
        found = score(name, did(tool("price"), **some), case)
        why = "it has found chunks, and no step tells a search"
        assert (found.value, found.reason, found.undefined) == (None, why, False)


def test_a_query_that_is_not_told_is_no_other_query() -> None:
    row = did(search("a", "x.md#0"), search(None, "x.md#0"))
    assert score("repeated_searches", row).reason == "a search does not tell its query"


@pytest.mark.parametrize(
    ("first", "second", "is_repeated"),
    [
        ("Return a lamp?", "return a  LAMP", True),
        ("?!", "?!", True),
        ("?!", "!!", False),
        ({"query": "lamp", "pages": ["a.md"]}, {"pages": ["a.md"], "query": "Lamp."}, True),
        ({"query": "lamp", "pages": ["a.md"]}, {"query": "lamp", "pages": ["b.md"]}, False),
        ({"query": "lamp"}, "lamp", False),
        (["a", 1], ["a", 1], True),
    ],
)
def test_the_same_query_in_other_dress_is_the_same(first: Any, second: Any, is_repeated: bool) -> None:
    row = did(search(first, "x.md#0"), search(second, "x.md#0"))
    assert score("repeated_searches", row).value == (0.5 if is_repeated else 0.0)


def test_a_chunk_without_a_document_is_placed_as_in_the_prompt() -> None:
    """A service may return chunks that name no page; the evidence's quote says which one it is."""
    case = Case(Query("q1", "?"), qrels={"refunds.md": 1}, evidence=(Evidence("refunds.md", "we refund in 5 days"),))
    chunk = {
        "chunk_id": "c7",
        "text": "We refund in 5 days.",
        "score": 1.0,
        "metadata": {"filename": "", "section": ""},
    }
    step = {"name": "s", "kind": "retrieve", "ms": 1.0, "input": "a", "hits": [{"chunk_id": "c7", "filename": ""}]}
    assert score("recall_by_step@1", did(step, retrieved_chunks=[chunk]), case).value == 1.0


def test_needless_is_a_search_where_nothing_had_to_be_looked_up() -> None:
    idle = needing(tools=())
    assert score("needless_searches", LOOKED, idle).value == 1.0
    assert score("needless_searches", did(tool("price"), **NOTHING), idle).value == 0.0
    # A pipeline that always searches would have 1 of each question, and one that hides its searches 0.
    for flat in ("retrieve", "generate"):
        assert score("needless_searches", did({"name": flat, "ms": 1.0}), idle).reason == FLAT
    assert measure_named("needless_searches").applies(BOTH) == "its tools are not an empty list"
    assert score("needless_searches", did(), idle).reason == "its pipeline tells no steps"


def test_recall_needs_a_number_of_searches_which_is_no_number_of_hits() -> None:
    with pytest.raises(SettingsError, match="needs a cutoff"):
        measure_named("recall_by_step")
    assert parse_gate("a1: recall_by_step@12 >= 0.5", k=5).cutoff is None
    assert measure_named("recall_by_step@1").applies(needing()) == "no relevant document"


CHUNKS = st.lists(st.sampled_from(["a.md#0", "a.md#1", "b.md#0", "c.md#0"]), max_size=4, unique=True)


@given(st.lists(CHUNKS, min_size=1, max_size=5))
def test_shares_lie_between_0_and_1_and_recall_never_falls(found: list[list[str]]) -> None:
    row = did(*(search(f"q{n % 2}", *chunks) for n, chunks in enumerate(found)), **NOTHING)
    case = needing("a.md", "b.md")
    for name in ("search_novelty", "repeated_searches", "searches_after_evidence"):
        value = score(name, row, case).value
        assert value is None or 0 <= value <= 1
    by_step = [score(f"recall_by_step@{k}", row, case).value for k in range(1, len(found) + 1)]
    assert by_step == sorted(by_step)
    union = {chunk.partition("#")[0] for chunks in found for chunk in chunks}
    assert by_step[-1] == len(union & {"a.md", "b.md"}) / 2


# Measures of calls of tools: by hand, against promptfoo's rules, and against ragas where it is installed.

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
    for arguments in ("price of a", "[1]", "{" * 3000, "[" * 19_999):
        assert value("tool_args", case, did(tool("price", arguments))) == "a call does not tell its arguments"
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
