from __future__ import annotations

from typing import Any

import jsonpath_rfc9535
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.pipelines.endpoint.answer import AnswerPath

SAID: Any = {
    "answer": "a",
    "choices": [{"message": {"content": "c"}}, {"message": {"content": "d"}}],
    "a b": {"x.y": 1, "m/n": 2, "t~u": 3},
    "empty": [],
    "nothing": None,
    "0": "zero",
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("answer", ["a"]),
        ("$.answer", ["a"]),
        ("/answer", ["a"]),
        ("answer?", ["a"]),
        ("choices[0].message.content", ["c"]),
        ("$['choices'][1]['message'].content", ["d"]),
        ("/choices/1/message/content", ["d"]),
        ("$.choices[*].message.content", ["c", "d"]),
        ("$.choices[?@.message.content=='d'].message.content", ["d"]),
        ("$..content", ["c", "d"]),
        ('["a b"]["x.y"]', [1]),
        ("/a b/m~1n", [2]),
        ("/a b/t~0u", [3]),
        ("$", [SAID]),
        ("nothing", [None]),
        ("empty", [[]]),
        ("choices[2]", []),
        ("choices[-1].message.content", ["d"]),
        ("choices.message", []),
        ("answer.text", []),
        ("nowhere", []),
        ("nowhere?", []),
    ],
)
def test_what_a_path_finds(path: str, found: list[Any]) -> None:
    assert AnswerPath(path).find(SAID) == found


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("reply", "At $ there is an object with 'answer', 'choices', 'a b', 'empty', 'nothing', '0'"),
        ("choices[0].text", "At $.choices[0] there is an object with 'message'"),
        ("choices[7].text", "At $.choices there is a list of 2, first an object with 'message'"),
        ("answer.text", "At $.answer there is text: 'a'"),
        ("nothing.x", "At $.nothing there is null"),
        ("/choices/0/text", "At $.choices.0 there is an object with 'message'"),
        ("$.hits[*].text", "At $ there is an object with 'answer', 'choices', 'a b', 'empty', 'nothing', '0'"),
    ],
)
def test_a_path_that_finds_nothing_says_what_is_there(path: str, near: str) -> None:
    assert AnswerPath(path).nearest(SAID) == near


@pytest.mark.parametrize("path", ["$.a[", "a..", "$[?", "a[*", "$x"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match=r"a: read.answer = .* is no path"):
        AnswerPath(path, "a: read.answer")


_NAMES = st.sampled_from(["a", "b", "c_d"])
_JSON: Any = st.recursive(st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner))


@given(_JSON, st.lists(_NAMES | st.integers(0, 3)))
def test_names_and_places_find_what_the_library_finds(document: Any, steps: list[str | int]) -> None:
    path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    assert AnswerPath(path).find(document) == list(jsonpath_rfc9535.find(path, document).values())
