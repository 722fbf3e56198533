"""What the page reads of steps: hits that no search before has found are told apart, and flat traces tell nothing."""

from __future__ import annotations

from typing import Any

from rag_harness.page.payload import Pool, told_steps
from rag_harness.records.row import RowStage
from tests.unit.measures.agents.trials import search, tool


def told(*steps: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    names: Pool[str] = Pool()
    found = list(told_steps([RowStage.model_validate(each) for each in steps], names))
    return found, list(names.values)


def test_a_hit_is_new_where_no_search_before_has_found_it() -> None:
    found, names = told(search("a", "x.md#0", "y.md#0"), tool("page", {"n": 1}), search("b", "y.md#0", "z.md#0"))
    assert names == ["x.md#0", "y.md#0", "z.md#0"]
    assert [each.get("hits") for each in found] == [[[0, 1], [1, 1]], None, [[1, 0], [2, 1]]]
    assert found[1] == {"kind": "tool", "input": {"n": 1}}


def test_reranking_finds_nothing_new_and_makes_nothing_old() -> None:
    ranked = {**search("a", "z.md#0"), "kind": "rerank"}
    found, _ = told(search("a", "x.md#0"), ranked, search("b", "z.md#0"))
    assert found[2]["hits"] == [[1, 1]]


def test_a_search_without_hits_found_nothing_only_where_others_tell_theirs() -> None:
    assert told(search("a", "x.md#0"), search("b"))[0][1] == {"kind": "retrieve", "input": "b", "hits": []}
    assert told(search("a"), search("b"))[0][1] == {"kind": "retrieve", "input": "b"}


def test_a_flat_trace_tells_nothing() -> None:
    assert told({"name": "retrieve", "ms": 1.0}, {"name": "generate", "ms": 1.0})[0] == [{}, {}]


def test_a_chunk_whose_id_names_no_document_has_it_before_it() -> None:
    hit = {"chunk_id": "c7", "filename": "x.md"}
    _, names = told({"name": "s", "kind": "retrieve", "ms": 1.0, "hits": [hit, {"chunk_id": "c8", "filename": ""}]})
    assert names == ["x.md#c7", "c8"]
