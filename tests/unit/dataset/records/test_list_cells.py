"""A cell may hold a list: as JSON, as Python prints it, with a separator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.data.source_records import ListCellError, texts_of

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
