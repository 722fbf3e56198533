"""Names of other tools are known by their meaning, and --map says which column is which field."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.data.queries import QueryLine
from rag_harness.data.source_records import (
    MEANINGS,
    ListCellError,
    field_meant,
    nearest_field,
    read_map,
    texts_of,
    value_at,
)

# Names of other tools are known by their meaning, and --map says which column is which field.


def test_every_field_of_a_line_is_known() -> None:
    assert set(MEANINGS) == {*QueryLine.model_fields, "turns"}


def test_no_name_means_two_fields() -> None:
    names = [name for each in MEANINGS.values() for name in each]
    assert len(names) == len(set(names))
    assert {name: field_meant(name) for name in names} == {
        name: ours for ours, each in MEANINGS.items() for name in each
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("question", "query"),
        ("input", "query"),
        ("user_input", "query"),
        ("expected_output", "ground_truth"),
        ("expectedOutput", "ground_truth"),
        ("reference", "ground_truth"),
        ("answer", "ground_truth"),
        ("qurey", "query"),
        ("banana", ""),
    ],
)
def test_the_nearest_field(name: str, wanted: str) -> None:
    assert nearest_field(name, QueryLine.model_fields) == wanted


def test_a_map_is_read() -> None:
    assert read_map(["question=user_input, id=key", "metadata.topic=inputs.topic"], "--map") == {
        "query": "user_input",
        "query_id": "key",
        "metadata.topic": "inputs.topic",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question", "FIELD=COLUMN was expected"),
        ("=x", "FIELD=COLUMN was expected"),
        ("qurey=x", "Did you mean 'query'?"),
        ("question=x,query=y", "query is named twice, as 'x' and as 'y'"),
        ("metadata=x", "metadata.NAME=COLUMN"),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"^--map") as caught:
        read_map([text], "--map")
    assert said in str(caught.value)


def test_a_path_leads_into_objects_lists_and_json_in_a_cell() -> None:
    values = {
        "a.b": 1,
        "input": {"question": ["x", {"text": "y"}]},
        "cell": '{"q": "z"}',
        "bad": "{",
        "n": float("nan"),
    }
    assert value_at(values, "a.b") == 1
    assert value_at(values, "input.question.1.text") == "y"
    assert value_at(values, "cell.q") == "z"
    assert [value_at(values, path) for path in ("bad.q", "input.answer", "input.question.9", "n")] == [None] * 4


# A cell may hold a list: as JSON, as Python prints it, with a separator.

LISTS = st.lists(st.text(min_size=1).map(str.strip).filter(bool), min_size=1, max_size=5)


@given(LISTS)
def test_a_list_comes_back_from_json_and_from_python(texts: list[str]) -> None:
    assert texts_of(texts) == texts_of(json.dumps(texts)) == texts_of(repr(texts)) == texts


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, []),
        (float("nan"), []),
        ("", []),
        ("  ", []),
        ("[]", []),
        ("[ ]", []),
        ("a | b||c", ["a", "b", "c"]),
        ("[1] says so", ["[1] says so"]),
        ("[a link](x.md) and [b]", ["[a link](x.md) and [b]"]),
        ("['it\\'s', \"b\"]", ["it's", "b"]),
        (["a", None, " ", 3], ["a", "3"]),
    ],
)
def test_what_a_value_holds(value: Any, wanted: list[str]) -> None:
    assert texts_of(value, "|") == wanted


def test_a_list_as_numpy_prints_it_is_not_joined_to_one_text() -> None:
    assert len(eval(str(np.array(["one", "two"])))) == 1  # what Python makes of it
    with pytest.raises(ListCellError, match="NumPy"):
        texts_of(str(np.array(["one", "two"])))


@pytest.mark.parametrize("text", ["['a', b]", "['a' + 'b']", "['a]", "['a', __import__('os')]"])
def test_what_is_no_list_of_texts_is_refused(text: str) -> None:
    with pytest.raises(ListCellError):
        texts_of(text if text.endswith("]") else f"{text}]")
