"""What a judge replies: what is there is read, and what is not has a name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.evaluation.judges.client import Missing, PassageVerdict, read_verdicts, whole_number, words_of
from rag_harness.evaluation.judges.questions import SUPPORTED
from rag_harness.models.prompts import json_of

YES, NO = PassageVerdict(1.0, 1), PassageVerdict(0.0)
S1 = {"index": 1, "verdict": "supported", "passage": 1}
KEYS = ["verdicts", "index", "verdict", "passage"]
S2 = {"index": 2, "verdict": "unsupported", "passage": 0}


def read(reply: Any, count: int = 2, passages: int = 3) -> list[PassageVerdict]:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return read_verdicts(text, count, SUPPORTED, passages)


def none(why: Missing) -> PassageVerdict:
    return PassageVerdict(missing=why)


@pytest.mark.parametrize(
    "reply",
    [
        {"verdicts": [S1, S2]},
        {"verdicts": [S2, S1]},
        {"verdicts": [{**S1, "index": "1", "verdict": " Supported "}, {**S2, "index": 2.0}], "more": 1},
        f"Here it is:\n```json\n{json.dumps({'verdicts': [S1, S2]})}\n```\nI hope that this helps.",
        f"<think>Maybe {{'index': 1}}?</think>{json.dumps({'verdicts': [S1, S2]})}",
    ],
    ids=["as asked", "other order", "as text", "in prose", "after thinking aloud"],
)
def test_verdicts_that_can_be_read(reply: Any) -> None:
    assert read(reply) == [YES, NO]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("They are both supported.", none(Missing.UNREADABLE)),
        ("", none(Missing.UNREADABLE)),
        ('{"verdicts": [{"index": 1, "verd', none(Missing.UNREADABLE)),
        ("[" * 100_000 + "{}", none(Missing.UNREADABLE)),
        ('{"a":' * 100_000 + "}" * 100_000, none(Missing.UNREADABLE)),
        (f'{{"verdicts": {"9" * 5000}}}', none(Missing.UNREADABLE)),
        ([S1, S2], none(Missing.UNREADABLE)),
        ({"verdicts": "supported"}, none(Missing.UNREADABLE)),
        ({"verdicts": [S1, "supported"]}, none(Missing.UNREADABLE)),
        ({"verdicts": []}, none(Missing.LEFT_OUT)),
        ({"verdicts": [{**S1, "index": 0}, {**S2, "index": 1}]}, none(Missing.NUMBERS)),
        ({"verdicts": [S1, S2, {**S1, "index": 3}]}, none(Missing.NUMBERS)),
        ({"verdicts": [{**S1, "index": -1}]}, none(Missing.NUMBERS)),
        ({"verdicts": [{**S1, "index": "first"}, S2]}, none(Missing.NUMBERS)),
        ({"verdicts": [{"verdict": "supported"}]}, none(Missing.NUMBERS)),
        ({"verdicts": [{**S1, "index": n} for n in range(1, 5001)]}, none(Missing.NUMBERS)),
    ],
)
def test_replies_that_cannot_be_used(reply: Any, said: PassageVerdict) -> None:
    assert read(reply) == [said, said]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from([*SUPPORTED]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON | st.dictionaries(st.just("verdicts"), st.lists(st.dictionaries(st.sampled_from(KEYS), _JSON))))
def test_whatever_comes_each_item_has_a_verdict_or_a_reason(reply: Any) -> None:
    found = read(reply)
    assert len(found) == 2
    assert all(each.value in (0.0, 1.0) or each.missing for each in found)


@pytest.mark.parametrize("verdict", ["maybe", 2, -1, 1, True, None, float("nan"), ["supported"], {}, ""])
def test_a_verdict_that_was_not_offered_is_none(verdict: Any) -> None:
    assert read({"verdicts": [{**S1, "verdict": verdict}, S2]}) == [none(Missing.WORD), NO]


def test_what_is_left_out_or_said_twice_takes_no_other_verdict_with_it() -> None:
    assert read({"verdicts": [S2]}) == [none(Missing.LEFT_OUT), NO]
    assert read({"verdicts": [S1, S1, S2]}) == [none(Missing.TWICE), NO]
    assert read({"verdicts": [S1, {**S1, "verdict": "unsupported"}, S2]}) == [none(Missing.TWICE), NO]


@pytest.mark.parametrize(
    ("passage", "said"), [(4, none(Missing.PASSAGE)), (-1, none(Missing.PASSAGE)), (0, PassageVerdict(1.0))]
)
def test_a_passage_that_is_not_there_supports_nothing(passage: int, said: PassageVerdict) -> None:
    assert read({"verdicts": [{**S1, "passage": passage}, S2]}) == [said, NO]


def test_what_is_not_supported_needs_no_passage() -> None:
    assert read({"verdicts": [S1, {**S2, "passage": 99}]}) == [YES, NO]


@pytest.mark.parametrize(
    ("said", "number"),
    [(3, 3), ("3", 3), (3.0, 3), (3.5, None), (True, None), (float("nan"), None), (float("inf"), None), (None, None)],
)
def test_whole_numbers(said: object, number: int | None) -> None:
    assert whole_number(said) == number


def test_halves_of_characters_do_not_reach_a_file() -> None:
    found = json_of('{"a": "x\\ud800"}')
    assert found
    assert words_of(found["a"]).encode() == "x\ufffd".encode()
    assert words_of(3) == words_of(" ") == ""
