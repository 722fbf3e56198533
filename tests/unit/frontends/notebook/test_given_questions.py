"""Whatever questions are handed over as, the cases are the same as those of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Evidence, ExpectedTool, Query
from rag_harness.data.queries import read_queries
from rag_harness.frontends.notebook.evaluate import questions_file
from rag_harness.records.expectations import expectations_of

LINES: list[dict[str, Any]] = [
    {
        "query_id": "q1",
        "query": "How long?",
        "ground_truth": "45 days",
        "context_reference": ["a.md"],
        "evidence": [{"filename": "a.md", "quote": "45 days"}],
        "metadata": {"topic": "returns", "level": 2},
        "expect": [{"contains": "45"}],
        "tools": [{"name": "search"}],
    },
    {"query_id": "q2", "query": "Live fish?", "query_type": "negative"},
]


def cases(queries: object, folder: Path) -> list[Case]:
    return read_queries(questions_file(queries, folder))


def test_dicts_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    assert cases(LINES, tmp_path) == cases(str(file), tmp_path) == cases(file, tmp_path)
    assert questions_file(file, tmp_path) == file


def test_a_case_is_the_same_case_again(tmp_path: Path) -> None:
    case = Case(
        Query("q1", "How long?", {"tenant": "a"}),
        "multi_hop",
        "45 days",
        {"a.md": 2, "b.md": 0},
        (Evidence("a.md", "45 days"),),
        False,
        {"topic": "returns"},
        expectations_of([{"not": {"contains": "46"}, "weight": 2}])[0],
        tools=(ExpectedTool("search", {"q": "lamp"}),),
    )
    assert cases([case], tmp_path) == [case]


def test_texts_pairs_and_names_of_other_tools(tmp_path: Path) -> None:
    found = cases(["How long?", ("And now?", "45"), {"user_input": "Why?", "reference": "So."}], tmp_path)
    assert [(case.query.text, case.ground_truth) for case in found] == [
        ("How long?", ""),
        ("And now?", "45"),
        ("Why?", "So."),
    ]
    assert len({case.query.query_id for case in found}) == 3


def test_frames_are_tables(tmp_path: Path) -> None:
    columns = {"question": ["How long?", "Why?"], "reference": ["45 days", None], "level": [1, 2], "topic": ["a", None]}
    of_pandas = cases(pandas.DataFrame(columns), tmp_path)
    assert of_pandas == cases(polars.DataFrame(columns), tmp_path)
    assert [case.ground_truth for case in of_pandas] == ["45 days", ""]
    assert [dict(case.metadata) for case in of_pandas] == [{"level": 1, "topic": "a"}, {"level": 2}]
    with pytest.raises(DataError, match="no column is the question: answer"):
        cases(pandas.DataFrame({"answer": ["x"]}), tmp_path)


def test_a_list_in_a_cell_of_a_frame(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"query": ["How long?"], "context_reference": [["a.md", "b.md"]]})
    assert cases(frame, tmp_path)[0].context_reference == ("a.md", "b.md")


def test_two_names_of_one_field(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mean the same field"):
        cases([{"question": "Why?", "user_input": "How?"}], tmp_path)


def test_a_turn_as_a_case_is_refused(tmp_path: Path) -> None:
    turn = Case(Query("c#2", "And then?", {"conversation": "c", "turn": 2, "history": []}))
    with pytest.raises(DataError, match="question 1 is a turn"):
        cases([turn], tmp_path)


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)


@given(st.lists(st.tuples(_text, _text), min_size=1, max_size=5, unique_by=lambda each: " ".join(each[0].split())))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    found = cases(pairs, tmp_path_factory.mktemp("asked"))
    assert [(case.query.text, case.ground_truth.strip()) for case in found] == [
        (question.strip(), answer.strip()) for question, answer in pairs
    ]
