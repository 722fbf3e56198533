"""Foreign JSON ends in a value or in a ValueError, however deep it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.json_text import DEEPEST_JSON, is_deep, read_json

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if inner is None else 1 + max(map(depth, inner), default=0)


@settings(max_examples=50)
@given(VALUES)
def test_what_is_no_deeper_is_as_json_has_it(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@settings(max_examples=50)
@given(VALUES, st.integers(1, 6))
def test_depth_is_counted_as_a_function_that_calls_itself_counts_it(value: Any, deepest: int) -> None:
    emptied = 1 if value in ([], {}) else 0
    assert is_deep(value, deepest) == (depth(value) - emptied > deepest) or depth(value) >= deepest


@pytest.mark.parametrize("levels", [DEEPEST_JSON + 1, 900, 100_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_endless_brackets_are_refused(levels: int, begin: str, end: str) -> None:
    for text in (begin * levels + "1" + end * levels, begin * levels):
        with pytest.raises(ValueError, match=r"nested deeper than 100 levels|Expecting value|delimiter"):
            read_json(text)


def test_a_hundred_levels_are_read() -> None:
    assert read_json("[" * (DEEPEST_JSON - 1) + "1" + "]" * (DEEPEST_JSON - 1))
    assert json.loads("[" * 10 + "]" * 10) == read_json("[" * 10 + "]" * 10)
