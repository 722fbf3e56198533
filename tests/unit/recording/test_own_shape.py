"""The short way to read a recording says what YAML says, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.recording.cassette_file import Recorded, _as_written, _as_yaml, write_interaction
from rag_harness.recording.cassettes import Cassettes
from rag_harness.recording.own_shape import read_own_shape

SHIPPED = sorted(Path("cassettes/embedded").glob("*/*.yaml"))
URL = "https://host.test/v1/chat/completions"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["", " a", "a\n", "\n a", "a\n\n", "a \nb", "\ta", "a\r\nb", "x\u2028y", "data: {}\n\ndata: [DONE]\n\n", "  \n a"]
)


def written(sent: Any, said: str, kind: str, ttft: float | None = 2.5) -> str:
    asked = Cassettes(Path("nowhere")).asked("POST", URL, sent if isinstance(sent, bytes) else b"")
    return write_interaction(asked, Recorded(200, kind, said.encode(), 12.25, ttft)).decode()


def agrees(text: str) -> bool:
    """Return whether the short way reads ``text``; it must then say what YAML says."""
    found = read_own_shape(text)
    if found is not None:
        assert _as_written(found) == _as_yaml(text)
    return found is not None


def test_every_shipped_recording_is_read_the_short_way() -> None:
    assert len(SHIPPED) > 700
    assert all(agrees(file.read_text(encoding="utf-8")) for file in SHIPPED[::7])


@given(TEXTS, TEXTS, st.sampled_from(["text/event-stream; charset=utf-8", "application/json", "", "a: b", "text/x; q"]))
def test_whatever_is_written_is_read_as_yaml_reads_it(asked: str, said: str, kind: str) -> None:
    import json

    agrees(written(json.dumps({"model": "m", "messages": [asked]}).encode(), said, kind))


def test_an_answer_of_a_common_server_is_read_the_short_way() -> None:
    said = 'data: {"choices": [{"delta": {"content": "29 €"}}]}\n\ndata: [DONE]\n\n'
    assert agrees(written(b'{"model": "m"}', said, "text/event-stream"))
    assert agrees(written(b'{"model": "m"}', said, "text/event-stream", ttft=None))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  response:", "  response: "),
        ("code: 200", "code: 2e2"),
        ("      string: |", "      string: >"),
        ("        data", "      data"),
        ("        data", "        data: \x07"),
        ("metadata:", "# metadata:"),
        ("total_ms: 12.25", "total_ms: 12"),
        ("version: 1", "version: 1 "),
        ("ttft_ms: 2.5\n", "ttft_ms: 2.5"),
    ],
)
def test_what_is_not_as_written_is_left_to_yaml(old: str, new: str) -> None:
    text = written(b'{"model": "m"}', "data: {}\n\n", "text/event-stream")
    assert old in text
    assert read_own_shape(text.replace(old, new, 1)) is None
