"""Measures of searches, on trials whose values are known by hand. What a row does not tell is not measured."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures import RowMeasure, measure_named
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import parse_gate
from tests.unit.evaluation.measures.agents.trials import did, needing, search, tool

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
    assert measure_named("needless_searches").applies(BOTH) == "its tools are no empty list"
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
