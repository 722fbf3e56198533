"""The answer in a model's JSON is read as it grows, whichever way the JSON is cut into pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError
from rag_harness.pipelines.generation import read_answer
from rag_harness.service.answer_stream import AnswerInJson, PlainText

# Halves of characters among them: models write them as escapes, and streams cut them in two.
TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud83d\ude00", "\ud83d", "\ude00", 'a"\\\n'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("answer"), inner, max_size=3),
    max_leaves=8,
)
OTHERS = st.dictionaries(TEXTS.filter(lambda key: key != "answer"), VALUES, max_size=3)


@st.composite
def replies(draw: st.DrawFn) -> str:
    members = list(draw(OTHERS).items())
    members.insert(draw(st.integers(0, len(members))), ("answer", draw(TEXTS)))
    written = json.dumps(
        dict(members), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2, "\t"]))
    )
    fence = draw(st.sampled_from(["{}", "```json\n{}\n```", "  ```JSON\n\n{}```\n", "```\n{}\n```", "\n {} \n"]))
    return fence.replace("{}", written)


def cut(text: str, places: list[int]) -> list[str]:
    borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(borders)]


def read(pieces: list[str]) -> str:
    reader = AnswerInJson()
    return "".join(map(reader.feed, pieces))


def answer_of(reply: str) -> str:
    whole = reply.strip().removeprefix("```json").removeprefix("```JSON").removeprefix("```").removesuffix("```")
    return str(json.loads(whole, strict=False)["answer"])


@given(replies(), st.lists(st.integers(0, 10**6), max_size=30))
def test_any_cut_of_any_json_gives_its_answer(reply: str, places: list[int]) -> None:
    said = answer_of(reply)
    expected = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if any("\ud800" <= char <= "\udfff" for char in said):
        try:
            expected = read_answer(reply, 0, reasoning=False).text
        except ModelOutputError:
            return
    assert read(cut(reply, places)) == expected
    assert read(list(reply)) == expected


@given(st.text(st.sampled_from('{}[]",:\\u0a`jsonwer \n1\ud83d')) | st.text(), st.lists(st.integers(0, 99), max_size=9))
@example('{"answer": "\\ud8', [])
@example('{"answer": "\\uzzzz"}', [3])
@example('{"answer"', [])
@example("}", [])
@example('{"a": }, "answer": "x"}', [])
def test_what_is_no_json_raises_nothing(text: str, places: list[int]) -> None:
    assert isinstance(read(cut(text, places)), str)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"reasoning_steps": ["answer", '"answer": "no"'], "answer": "yes"}, "yes"),
        ({"inner": {"answer": "no", "list": [{"answer": "no"}]}, "answer": "yes"}, "yes"),
        ({"answer": {"answer": "no"}}, ""),
        ({"answer": ["no"]}, ""),
        ({"answer": 29}, ""),
        ({"answer": None}, ""),
        ({"Answer": "no"}, ""),
        (["answer", "no"], ""),
        ({}, ""),
        ("answer", ""),
    ],
)
def test_nothing_of_other_keys_is_shown(reply: Any, said: str) -> None:
    assert read(list(json.dumps(reply))) == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"\\u0061nswer": "yes"}', "yes"),
        ('{"answer": "yes"', "yes"),
        ('{"answer": "ye', "ye"),
        ('{"answer": "yes"} and so on {"answer": "no"}', "yes"),
        ('Here you are: {"answer": "no"}', ""),
        ('<think>{"answer": "no"}</think>{"answer": "no"}', ""),
        ("It costs 29.", ""),
        ("[" * 10_000 + '{"answer": "no"}', ""),
        ('{"deep": ' + "[" * 10_000 + "]" * 10_000 + ', "answer": "yes"}', "yes"),
        (" " * 10_000 + '{"answer": "yes"}', "yes"),
    ],
    ids=["key escaped", "open", "cut off", "twice", "prose", "thought", "no JSON", "a list", "deep", "blanks"],
)
def test_what_is_read_of_other_replies(reply: str, said: str) -> None:
    assert read(list(reply)) == read([reply]) == said


def test_the_answer_is_there_as_soon_as_it_is_written() -> None:
    reader = AnswerInJson()
    pieces = ['{"answer": "It', " costs\\", "n\\u20ac", "29 \\ud83d", "\\ude00.", '"}']
    assert [reader.feed(piece) for piece in pieces] == ["It", " costs", "\n€", "29 ", "😀.", ""]


def test_halves_of_a_character_wait_for_each_other_and_no_longer_than_the_answer() -> None:
    reader = AnswerInJson()
    assert [reader.feed(piece) for piece in ('{"answer": "a\ud83d', "\ude00b\\ud83d", '"}')] == ["a", "😀b", "\ufffd"]


def test_a_plain_answer_is_read_as_it_comes() -> None:
    reader = PlainText()
    assert [reader.feed(piece) for piece in ('{"a', "\ud83d", "\ude00")] == ['{"a', "", "😀"]
