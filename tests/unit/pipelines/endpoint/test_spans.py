"""The receiver of spans says nothing to the terminal, whatever an exporter does, and counts what broke off."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.log import log
from rag_harness.models.recording.scrubbing import Cleaner
from rag_harness.pipelines.endpoint import spans
from rag_harness.pipelines.endpoint.spans import PATH, SpanServer, broken_exports, cleaned_span
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of, spans_of_request

# The receiver of spans says nothing to the terminal, whatever an exporter does, and counts what broke off.

HEAD = f"POST {PATH} HTTP/1.1\r\nContent-Length: 1000\r\n".encode()


@pytest.fixture
def server() -> Iterator[SpanServer]:
    broken_exports.taken()
    made = SpanServer(0, "test")
    yield made
    made.close()


def sent(server: SpanServer, content: bytes, resets: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(content)
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def counted(server: SpanServer, number: int) -> bool:
    """Wait until so many are counted, and no more."""
    found, until = 0, time.monotonic() + 5
    while found < number and time.monotonic() < until:
        found += broken_exports.taken().get(f"http://127.0.0.1:{server.port}{PATH}", 0)
        time.sleep(0.01)
    return found == number


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [HEAD + b"\r\n{", HEAD + b"\r\n", HEAD + b"\r\n" + b"x" * 999])
def test_an_exporter_that_hangs_up_is_counted_in_silence(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    for _ in range(3):
        sent(server, content, resets)
    assert counted(server, 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [b"", b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n"])
def test_what_sends_no_spans_is_not_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    sent(server, content, resets)
    sent(server, HEAD + b"\r\n", resets)
    assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_an_exporter_that_falls_silent_is_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans._Handler, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(HEAD + b"\r\n{")
        assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_ours_is_logged_and_counted_and_not_printed(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    said: list[str] = []
    noted: Callable[..., None] = lambda message, **_: said.append(message)  # noqa: E731
    monkeypatch.setattr(spans, "_spans_in", broken)
    monkeypatch.setattr(log, "error", noted)
    sent(server, HEAD + b"\r\n" + b"x" * 1000, resets=False)
    assert counted(server, 1)
    assert said == ["a request with spans could not be handled"]
    assert capfd.readouterr() == ("", "")


def test_who_waits_in_vain_is_told(server: SpanServer) -> None:
    sent(server, HEAD + b"\r\n{", resets=True)
    assert counted(server, 1)
    assert "the exporter hung up" in server.inbox._hint()


# What is kept of a span is clean in all its words, and its ids, times and numbers are those that came.

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
