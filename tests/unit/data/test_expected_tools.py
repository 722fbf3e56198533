"""Which tools a question expects: read with its line, or refused with what is wrong, before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, ExpectedTool
from rag_harness.data.queries import read_queries
from rag_harness.records.cases import MOST_TOOLS, tools_as_json


def read(folder: Path, **line: Any) -> list[Case]:
    file = folder / "queries.jsonl"
    file.write_text(json.dumps({"query_id": "q1", "query": "What is the T-18?", **line}) + "\n")
    return read_queries(file)


def test_a_line_states_calls_with_and_without_arguments(tmp_path: Path) -> None:
    raw = [{"name": "price", "args": {"sku": "T-18"}}, {"name": "page"}, {"name": "stop", "args": {}}]
    (case,) = read(tmp_path, tools=raw)
    assert case.tools == (ExpectedTool("price", {"sku": "T-18"}), ExpectedTool("page"), ExpectedTool("stop", {}))
    assert tools_as_json(case.tools) == raw


def test_an_empty_list_says_something_and_no_list_does_not(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"tools": []}, {}, {"tools": None}]
    assert [read(tmp_path, **line)[0].tools for line in lines] == [(), None, None]


def test_turns_have_tools_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    turns = [{"query": "a", "tools": [{"name": "price"}]}, {"query": "b"}]
    file.write_text(json.dumps({"conversation": "c", "turns": turns}) + "\n")
    assert [case.tools for case in read_queries(file)] == [(ExpectedTool("price"),), None]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("price", "a list of objects was expected"),
        ({"name": "price"}, "a list of objects was expected"),
        (["price"], "call 1: an object was expected"),
        ([{"name": "a"}, {"tool": "price"}], "call 2: Unknown key 'tool'."),
        ([{"name": "price", "arg": {}}], "Did you mean 'args'?"),
        ([{"args": {}}], "call 1: name is missing"),
        ([{"name": " "}], "call 1: name is missing"),
        ([{"name": "price", "args": ["T-18"]}], "call 1: args: an object was expected"),
        ([{"name": "price", "args": None}], "call 1: args: an object was expected"),
        ([{"name": "a"}] * (MOST_TOOLS + 1), "101 calls; a case may expect 100"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, raw: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, tools=raw)
    assert str(caught.value).startswith(f"{tmp_path / 'queries.jsonl'}:1: q1: tools: ")
    assert said in str(caught.value)
