"""What a model thought is parted from what it answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.prompts import json_of, split_reply


@pytest.mark.parametrize(
    ("reply", "thought", "answer"),
    [
        ("45 days", "", "45 days"),
        ("<think>Maybe 99?</think>45 days", "Maybe 99?", "45 days"),
        ("\n<think>\nMaybe\n\n99?\n</think>\n\n45 days", "Maybe\n\n99?", "45 days"),
        ("<thinking>a</thinking><think>b</think>45 days", "a\n\nb", "45 days"),
        ("[THINK]a[/THINK]45 days", "a", "45 days"),
        ("◁think▷a◁/think▷45 days", "a", "45 days"),
        ("Maybe 99?\n</think>\n\n45 days", "Maybe 99?", "45 days"),
        ("<think>It never closes", "It never closes", ""),
        ("<think></think>45 days", "", "45 days"),
        ("Write <think> before it, and </think> behind it.", "", "Write <think> before it, and </think> behind it."),
        ("The mark `</think>` ends it.", "", "The mark `</think>` ends it."),
        ("a < b and [c]", "", "a < b and [c]"),
    ],
)
def test_parts(reply: str, thought: str, answer: str) -> None:
    assert split_reply(reply) == (thought, answer)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"answer": "x"}', {"answer": "x"}),
        ('```json\n{"answer": "x"}\n```', {"answer": "x"}),
        ('Here it is: {"answer": "x"}. Anything else?', {"answer": "x"}),
        ('<think>{"answer": "draft"} or {45}?</think>{"answer": "x"}', {"answer": "x"}),
        ('For example {"answer": "a"}. Mine: {"answer": "x"}', {"answer": "x"}),
        ("{45} or 99?", None),
        ("no object", None),
        ("[1]", None),
        ('{"answer": "cut o', None),
    ],
)
def test_json_is_found_in_what_stands_around_it(reply: str, found: dict[str, str] | None) -> None:
    assert json_of(reply) == found


@given(st.text(max_size=80))
def test_a_reply_without_marks_is_the_answer(reply: str) -> None:
    thought, answer = split_reply(reply)
    assert answer == reply or thought
