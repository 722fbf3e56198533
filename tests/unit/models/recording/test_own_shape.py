"""The fast reader of recordings returns the same as YAML, or None."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.recording.cassette_file import (
    ExperimentCassette,
    Recorded,
    _as_written,
    _as_yaml,
    _yaml,
    read_own_shape,
    write_interaction,
)
from rag_harness.models.recording.cassettes import Cassettes

URL = "https://host.test/v1/chat/completions"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["", " a", "a\n", "\n a", "a\n\n", "a \nb", "\ta", "a\r\nb", "x\u2028y", "data: {}\n\ndata: [DONE]\n\n", "  \n a"]
)


def written(sent: Any, said: str, kind: str, ttft: float | None = 2.5, version: str = "", url: str = URL) -> str:
    asked = Cassettes(Path("nowhere")).asked("POST", url, sent if isinstance(sent, bytes) else b"")
    recorded = Recorded(200, kind, said.encode(), 12.25, ttft, recorded_at="2026-11-20T14:02:00+00:00", version=version)
    return write_interaction(asked, recorded).decode()


def agrees(text: str) -> bool:
    """Return whether the short way reads ``text``; it must then say what YAML says."""
    found = read_own_shape(text)
    if found is not None:
        assert _as_written(found) == _as_yaml(text)
    return found is not None


KINDS = ["text/event-stream; charset=utf-8", "application/json", "", "a: b", "text/x; q", "text/plain"]
VERSIONS = st.sampled_from(["", "r2.4.1", "1.0", "true", "2026-11-20", "it's", "a\nb", "ü: #", " x ", "'"]) | TEXTS


@given(TEXTS, TEXTS, st.sampled_from(KINDS), VERSIONS, st.sampled_from([URL, "http://h/a b", "http://h/?q=1", "/x"]))
def test_whatever_is_written_is_read_as_yaml_reads_it(asked: str, said: str, kind: str, version: str, url: str) -> None:
    text = written(json.dumps({"model": "m", "messages": [asked]}).encode(), said, kind, version=version, url=url)
    agrees(text)
    read = _as_yaml(text)
    assert (read.body.decode(), read.content_type, read.version) == (said, kind, version)
    assert read.request == {"model": "m", "messages": [asked]}


@given(TEXTS, st.sampled_from(["text/event-stream", "application/json"]), st.sampled_from(["", "r2.4.1"]))
def test_vcrpy_reads_what_is_written_without_it(said: str, kind: str, version: str) -> None:
    import vcr

    text = written(b'{"model": "m"}', said, kind, version=version)
    requests, responses, *_ = vcr.serialize.deserialize(text, vcr.serializers.yamlserializer)
    assert json.loads(requests[0].body) == {"model": "m"}
    assert responses[0]["body"]["string"] == said.encode()


def test_a_recording_that_yaml_wrote_is_written_the_same_without_it() -> None:
    for file in sorted(Path("cassettes/embedded").glob("*.yaml")):
        cassette = ExperimentCassette(file)
        # The one writes a version in quotes, the other only where it would be a number.
        for found in (replace(cassette.read(digest), version="") for digest in cassette.digests[::67]):
            asked = Cassettes(file.parent).asked("POST", found.url, str(found.sent).encode())
            without = write_interaction(asked, found)
            assert read_own_shape(without.decode()) is not None
            assert _yaml(asked, asked.content, found.body.decode(), found) == without


def test_writing_imports_neither_vcrpy_nor_yaml(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rag_harness.models.recording.cassettes import Cassettes, Recorded; "
        "made = Cassettes(Path(sys.argv[1])); asked = made.asked('POST', 'http://h/x', b'{\"model\": \"m\"}'); "
        "made.save(asked, Recorded(200, 'text/event-stream', b'data: {}\\n\\n', 1.0, None)); "
        "print('yaml' in sys.modules, 'vcr' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


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
        ("ttft_ms: 2.5\n", "ttft_ms: 2.5 \n"),
        ("+00:00'\n", "+00:00'"),
        ("2026-11-20T", "20 Nov 2026 "),
    ],
)
def test_what_is_not_as_written_is_left_to_yaml(old: str, new: str) -> None:
    text = written(b'{"model": "m"}', "data: {}\n\n", "text/event-stream")
    assert old in text
    assert read_own_shape(text.replace(old, new, 1)) is None
