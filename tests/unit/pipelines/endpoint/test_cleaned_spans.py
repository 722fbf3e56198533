"""What is kept of a span is clean in all its words, and its ids, times and numbers are those that came."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.recording.scrubbing import Cleaner
from rag_harness.pipelines.endpoint.spans import cleaned_span
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of, spans_of_request

KEY = "geheim-12345"
SPAN = SpanRecord("search", "1" * 32, "2" * 16, "3" * 16, 1_700_000_000 * 10**9, 1_700_000_001 * 10**9)
DIGITS = Cleaner([KEY], lambda text: re.sub("[0-9]", "#", text))
"""A scrub of numbers, as one of telephone numbers is."""


def test_ids_times_and_numbers_stay_whatever_is_scrubbed() -> None:
    numbers = {"llm.token_count.prompt": 30, "llm.cost.total": 0.5, "app.password": True}
    event = SpanEvent("call 0800", 1_700_000_000 * 10**9, {"n": 7, "said": "call 0800"})
    (kept,) = spans_of_request(
        request_of([cleaned_span(replace(SPAN, attributes=numbers, events=(event,)), DIGITS)], "s")
    )
    assert replace(kept, events=()) == replace(SPAN, attributes=numbers)
    assert kept.events == (SpanEvent("call ####", event.at_ns, {"n": 7, "said": "call ####"}),)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"input.value": "call 0800"}, {"input.value": "call ####"}),
        ({f"user.{KEY}.name": "a"}, {"user.REDACTED.name": "a"}),
        ({"app.api_key": "abc"}, {"app.api_key": "REDACTED"}),
        ({"http.request.header.authorization": ["Bearer abc"]}, {"http.request.header.authorization": "REDACTED"}),
        ({"http.request.header.set-cookie": ["id=abc"]}, {"http.request.header.set-cookie": "REDACTED"}),
        ({"tags": ["call 0800", 3]}, {"tags": ["call ####", 3]}),
        ({"user": {"password": "abc", "age": 30}}, {"user": {"password": "REDACTED", "age": 30}}),
        ({"input.value": '{"password": "abc", "n": 30}'}, {"input.value": '{"password": "REDACTED", "n": 30}'}),
        ({"output.value": '{"n":  30}'}, {"output.value": '{"n":  30}'}),
    ],
)
def test_words_are_clean_wherever_they_stand(attributes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert cleaned_span(replace(SPAN, attributes=attributes), DIGITS).attributes == expected


def test_name_and_message_are_clean() -> None:
    cleaned = cleaned_span(replace(SPAN, name=f"GET /{KEY}", message=f"no {KEY}"), Cleaner([KEY]))
    assert (cleaned.name, cleaned.message) == ("GET /REDACTED", "no REDACTED")


_texts = st.text(max_size=8).map(lambda text: f"{text}{KEY}")
_values = st.recursive(
    _texts | st.integers(0, 99) | _texts.map(lambda text: json.dumps({text: [text]})),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_texts, _values, max_size=4))
def test_no_secret_is_left_in_any_attribute(attributes: dict[str, Any]) -> None:
    cleaned = cleaned_span(replace(SPAN, attributes=attributes), Cleaner([KEY]))
    assert KEY not in json.dumps(request_of([cleaned], "s"), ensure_ascii=False)
