"""Recorded answers: read without the SDK, and kept without anything private."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from rag_harness.core.errors import (
    DataError,
    ModelOutputError,
    RagHarnessError,
    RecordingMissError,
    RecordingWriteError,
)
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Message
from rag_harness.models import calls
from rag_harness.models.completions import Events, Replayed, StreamedCompletion, StreamError, completion_of
from rag_harness.models.openai_chat import OpenAIChat, SentParameters
from rag_harness.models.recording.cassette_file import ExperimentCassette, Recorded
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.transport import RecordingTransport
from rag_harness.pipelines.parts import RunParts
from tests.effort import bounded
from tests.unit.models.chat.test_openai_chat import DONE, GOOD, SCHEMA, event, stream
from tests.unit.models.recording.answering import Answering, answering
from tests.unit.server import Reply, as_json, refusal, serving

# A recorded answer is read without the SDK, and is what the way through the SDK gives.

# A recorded answer is read without the SDK, and is what the way through the SDK gives.

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "cassettes" / "embedded"
URL = "http://embedded/v1"
UNWANTED = ("openai", "vcr", "httpx2", "aiohttp", "yaml")


def shipped(every: int) -> list[Any]:
    found = [ExperimentCassette(file) for file in sorted(SHIPPED.glob("*.yaml"))]
    return [cassette.read(digest).request for cassette in found for digest in cassette.digests[::every]]


def client(playback: Playback) -> Any:
    import httpx2
    from openai import AsyncOpenAI

    http = httpx2.AsyncClient(transport=RecordingTransport(playback, None))
    return AsyncOpenAI(base_url=URL, api_key="none", max_retries=0, timeout=None, http_client=http)


def test_shipped_answers_are_those_of_the_way_through_the_sdk() -> None:
    playback = Playback(Cassettes(SHIPPED), may_call=False, keep=False)
    direct, requests = Replayed(playback, f"{URL}/chat/completions"), shipped(every=20)

    async def through_the_sdk() -> list[Completion]:
        sdk = client(playback)
        said = [await _asked(OpenAIChat(lambda: sdk, request["model"]), request) for request in requests]
        await sdk.close()
        return said

    assert [direct.find(request) for request in requests] == asyncio.run(through_the_sdk())


async def _asked(chat: OpenAIChat, request: dict[str, Any]) -> Completion:
    chat._sampling = SentParameters(request["temperature"], request["seed"], request["max_tokens"])
    messages = [Message(message["role"], message["content"]) for message in request["messages"]]
    return await chat.complete(messages, request.get("response_format"))


def test_shipped_answers_are_those_of_the_sdks_own_objects() -> None:
    playback = Playback(Cassettes(SHIPPED), may_call=False, keep=False)
    direct, requests = Replayed(playback, f"{URL}/chat/completions"), shipped(every=80)

    async def read(sdk: Any, request: dict[str, Any]) -> tuple[str, str, int, int]:
        chunks = [chunk async for chunk in await sdk.chat.completions.create(**request)]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        return text, chunks[-1].model, chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens

    async def through_the_sdk() -> list[Any]:
        sdk = client(playback)
        found = [await read(sdk, request) for request in requests]
        await sdk.close()
        return found

    found = [direct.find(request) for request in requests]
    assert [
        (one.text, one.model, one.usage.prompt_tokens, one.usage.completion_tokens) for one in found if one
    ] == asyncio.run(through_the_sdk())


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Recorded(200, "application/json", GOOD, 1.0, None), "JSON where a stream was asked for"),
        (Recorded(204, "text/event-stream", GOOD, 1.0, None), "a status of its own"),
        (Recorded(200, "text/event-stream", event("It costs "), 1.0, None), "half an answer"),
        (Recorded(200, "text/event-stream", b"data: {\n\n", 1.0, None), "not JSON"),
        (Recorded(200, "text/event-stream", b'data: {"error": "x"}\n\n', 1.0, None), "an error"),
        (Recorded(200, "text/event-stream", b'data: {"choices": "x"}\n\n', 1.0, None), "no choices"),
    ],
)
def test_what_it_cannot_read_is_left_to_the_sdk(found: Recorded, why: str) -> None:
    assert completion_of(found, "m") is None, why


def test_an_answer_without_text_is_none() -> None:
    empty = Recorded(200, "text/event-stream", event(finish="stop") + DONE, 1.0, None)
    with pytest.raises(ModelOutputError, match="without any text"):
        completion_of(empty, "m")


def settings(folder: Path, mode: Any, url: str = "http://127.0.0.1:9", **more: Any) -> Settings:
    known = Settings(mode=mode, profile="p", chat_model="some/model", chat_base_url=f"{url}/v1", timeout=5.0)
    return replace(known, rootdir=str(folder), **more)


def ask(known: Settings, schema: Any = None) -> Completion:
    async def session() -> Completion:
        endpoints = RunParts(known).endpoints
        try:
            return await endpoints.chat().complete([Message("user", "Who?")], schema)
        finally:
            await endpoints.aclose()

    return asyncio.run(session())


def test_a_model_without_schemas_is_replayed_as_it_was_asked_in_the_end(tmp_path: Path) -> None:
    with serving(refusal(400, "'response_format' is not supported"), stream()) as server:
        live = ask(settings(tmp_path, "record", server.url.removesuffix("/v1")), SCHEMA)
        assert len(server.requests) == 2
    assert live.text == ask(settings(tmp_path, "replay"), SCHEMA).text == "It costs €29."


def damage(folder: Path) -> None:
    (file,) = folder.rglob("*.yaml")
    file.write_bytes(file.read_bytes()[:-10])


def lose(folder: Path) -> None:
    (file,) = folder.rglob("*.yaml")
    file.rename(file.with_stem("0" * 24))


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (damage, DataError, r"\.yaml cannot be read: .*record it again"),
        (lose, RecordingMissError, "The nearest recording, 0000"),
    ],
)
def test_errors_are_those_of_the_recording(
    tmp_path: Path, spoil: Callable[[Path], None], error: type[Exception], said: str
) -> None:
    with answering("John") as server:
        ask(settings(tmp_path, "record", server.url))
    spoil(tmp_path / "cassettes")
    with pytest.raises(error, match=said):
        ask(settings(tmp_path, "replay"))


@pytest.mark.parametrize(("rerecord", "calls"), [(False, 1), (True, 2)])
def test_rerecord_calls_again(tmp_path: Path, rerecord: bool, calls: int) -> None:
    with answering("John") as server:
        ask(settings(tmp_path, "record", server.url))
        again = ask(settings(tmp_path, "record", server.url, rerecord=rerecord))
    assert len(server.calls) == calls
    assert again.recorded is not rerecord


_ASK = """
import asyncio, sys
from rag_harness.pipelines.parts import RunParts
from rag_harness.core.settings import Settings
from rag_harness.core.types import Message

async def ask():
    folder, url = sys.argv[1:]
    known = Settings(mode="replay", profile="p", chat_model="some/model", chat_base_url=url, rootdir=folder)
    endpoints = RunParts(known).endpoints
    said = await endpoints.chat().complete([Message("user", "Who?")])
    await endpoints.aclose()
    return said

print(asyncio.run(ask()).text, "found:", *[name for name in {names} if name in sys.modules])
"""


def test_a_recorded_answer_imports_no_sdk_and_no_http_library(tmp_path: Path) -> None:
    with answering("John") as server:
        ask(settings(tmp_path, "record", server.url))
    command = [sys.executable, "-c", _ASK.format(names=UNWANTED), str(tmp_path), f"{server.url}/v1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "John found:\n", done.stdout + done.stderr


_REPLAY = """
import sys
import pytest
code = pytest.main(sys.argv[1:])
print("found:", *[name for name in {names} if name in sys.modules])
raise SystemExit(code)
"""


@pytest.mark.long
def test_a_replay_imports_no_sdk_and_no_http_library(tmp_path: Path) -> None:
    places = [f"--rag-{name}={tmp_path / name}" for name in ("output", "cache-dir", "logs")]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "e3", "--rag-mode=replay", "--rag-limit=3"]
    options += ["-o", "rag_attribute=false"]  # of a part of the study, the worst are others than were recorded
    command = [sys.executable, "-c", _REPLAY.format(names=UNWANTED), *options, *places]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].strip() == "found:"
    rows = [json.loads(line) for line in (tmp_path / "output" / "e3_filtered_rag.jsonl").read_text().splitlines()]
    assert [row["timings_recorded"] for row in rows if "query_id" in row] == [True] * 3


def test_an_answer_that_is_too_long_is_refused_as_live() -> None:
    recorded = Recorded(200, "text/event-stream", GOOD, 1.0, None)
    assert completion_of(recorded, "some/model", longest=13) is not None
    with pytest.raises(ModelOutputError, match=r"answered with at least 13 characters, and 12 are taken"):
        completion_of(recorded, "some/model", longest=12)


# Server-sent events, cut anywhere, are those that the SDK's own reader sees.

LINES = st.sampled_from(
    [
        "",
        "data: a",
        "data:b",
        "data:  c",
        "data",
        ": a comment",
        "event: x",
        "id: 1",
        "data: [DONE]",
        "data: é€",
        "x: y",
    ]
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 60), max_size=5))
def test_events_are_those_of_the_sdk(lines: list[str], end: str, cuts: list[int]) -> None:
    body = "".join(line + end for line in lines).encode()
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    events = Events()
    found = [data.decode() for start, stop in pairwise(places) for data in events.feed(body[start:stop])]
    theirs = [each.data for each in SSEDecoder().iter_bytes(iter([body])) if each.data]
    assert [each for each in found if each] == theirs


@given(st.lists(st.integers(0, len(GOOD)), max_size=8))
def test_an_answer_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    said = StreamedCompletion("asked/model")
    places = [0, *sorted(cuts), len(GOOD)]
    for start, stop in pairwise(places):
        said.add(GOOD[start:stop])
    assert (said.text(), said.model, said.is_done) == ("It costs €29.", "served/model", True)
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens) == (11, 7)


def test_what_comes_after_the_end_is_not_read() -> None:
    said = StreamedCompletion("m")
    said.add(GOOD + event(" And more.") + b"data: no JSON\n\n")
    assert said.text() == "It costs €29."


@pytest.mark.parametrize(
    ("error", "message"),
    [({"message": "upstream died", "code": 502}, "upstream died"), ("oops", "oops"), ({"a": 1}, "")],
)
def test_an_error_in_the_stream(error: Any, message: str) -> None:
    with pytest.raises(StreamError, match=message or "An error occurred") as caught:
        StreamedCompletion("m").add(b"data: " + json.dumps({"error": error}).encode() + b"\n\n")
    assert caught.value.body == error


@pytest.mark.parametrize("data", [b"[1]", b"1", b"null", b"{", b"\xff"])
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(ValueError):
        StreamedCompletion("m").add(b"data: " + data + b"\n\n")


def test_half_an_answer_and_one_without_text() -> None:
    half, empty = StreamedCompletion("m"), StreamedCompletion("m")
    half.add(event("It costs "))
    empty.add(event(finish="stop"))
    with pytest.raises(ConnectionError, match="broke off"):
        half.text()
    with pytest.raises(ModelOutputError, match="without any text"):
        empty.text()


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_why_the_model_stopped_is_kept(reason: str) -> None:
    """Usage ends a stream too, and is no reason."""
    said = StreamedCompletion("m")
    choice = {"delta": {"content": "30 days"}, "finish_reason": reason or None}
    last = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    said.add(f"data: {json.dumps(last)}\n\n".encode())
    assert (said.text(), said.finish_reason) == ("30 days", reason)


def test_an_answer_of_the_longest_length_passes_and_one_more_character_does_not() -> None:
    said = StreamedCompletion("asked/model", longest=5)
    said.add(event("four") + event("!", finish="stop"))
    assert said.text() == "four!"
    with pytest.raises(ModelOutputError, match=r"at least 6 characters, and 5 are taken.*max_answer in "):
        said.add(event("!"))


def test_a_line_in_ten_thousand_parts_is_joined_once() -> None:
    events, part = Events(), b"a" * 2_000
    assert not list(events.feed(b"data: "))
    with bounded(5):  # copied each time, it would be 100 GB
        for _ in range(10_000):
            assert not list(events.feed(part))
        (found,) = events.feed(b"\n\n")
    assert len(found) == 20_000_000


def test_an_event_of_endless_brackets_is_no_event() -> None:
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        StreamedCompletion("asked/model").add(b"data: " + b"[" * 100_000 + b"\n\n")


# The chat adapter behind its recordings: what it keeps, and that nothing private is among it.

KEY = "sk-planted-0123456789"


def recorded_settings(folder: Path, mode: Any, url: str = "http://127.0.0.1:9", **more: Any) -> Settings:
    known = Settings(mode=mode, profile="p", chat_model="some/model", chat_base_url=f"{url}/v1", chat_api_key=KEY)
    return replace(known, rootdir=str(folder), **more)


def ask_recorded(known: Settings, question: str = "Who?", scrub: Any = None) -> Completion:
    async def session() -> Completion:
        endpoints = RunParts(known, scrub).endpoints
        try:
            return await endpoints.chat().complete([Message("user", question)])
        finally:
            await endpoints.aclose()

    return asyncio.run(session())


def recordings(folder: Path) -> list[Path]:
    return sorted(file for file in (folder / "cassettes").rglob("*") if file.is_file())


def record(folder: Path, server: Answering, **options: Any) -> Completion:
    return ask_recorded(recorded_settings(folder, "record", server.url), **options)


def test_times_are_those_of_the_recorded_call(tmp_path: Path) -> None:
    with answering("John ", "Smith") as server:
        live = record(tmp_path, server)
        again = record(tmp_path, server)
        assert len(server.calls) == 1
    replayed = ask_recorded(recorded_settings(tmp_path, "replay"))
    assert live.text == replayed.text == again.text == "John Smith"
    assert (live.recorded, replayed.recorded) == (False, True)
    assert replayed.ttft_ms is not None
    assert live.ttft_ms is not None
    assert 0 < replayed.ttft_ms <= replayed.total_ms <= live.total_ms
    assert replayed.ttft_ms <= live.ttft_ms


def test_a_name_and_a_key_that_deltas_cut(tmp_path: Path) -> None:
    text = f"John Smith has {KEY}."
    with answering(*(text[n : n + 4] for n in range(0, len(text), 4))) as server:
        live = record(
            tmp_path,
            server,
            question=f"Who is John Smith? {KEY}",
            scrub=lambda said: said.replace("John Smith", "<NAME>"),
        )
    assert live.text == text
    (file,) = recordings(tmp_path)
    assert not [each for each in ("John", "Smith", "planted", KEY[:6]) if each in file.read_text()]
    replayed = ask_recorded(
        recorded_settings(tmp_path, "replay"),
        f"Who is John Smith? {KEY}",
        lambda said: said.replace("John Smith", "<NAME>"),
    )
    assert replayed.text == "<NAME> has REDACTED."


def test_a_miss_does_not_say_what_is_private(tmp_path: Path) -> None:
    with pytest.raises(RecordingMissError, match=r"No recording of some/model for 'Who is <NAME>\?'") as caught:
        ask_recorded(
            recorded_settings(tmp_path, "replay"),
            "Who is John Smith?",
            lambda said: said.replace("John Smith", "<NAME>"),
        )
    assert str(caught.value).endswith("Record it: --rag-profile=p --rag-mode=record")


def test_a_full_disk_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with answering("John") as server:
        record(tmp_path, server)
        before = recordings(tmp_path)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(RecordingWriteError, match="No space left on device"):
            record(tmp_path, server, question="Where?")
    assert recordings(tmp_path) == before


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cassettes").write_text("a file")
    with answering("John") as server:
        with pytest.raises(DataError, match="Nothing was called"):
            record(tmp_path, server)
        assert server.calls == []


@pytest.mark.parametrize("body", [{"error": {"message": "overloaded"}}, {"choices": []}, []])
def test_json_in_place_of_a_stream_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: object) -> None:
    monkeypatch.setattr(calls, "_FIRST_WAIT", 0.0)
    with serving(as_json(body)) as server, pytest.raises(RagHarnessError):
        ask_recorded(recorded_settings(tmp_path, "record", server.url.removesuffix("/v1"), timeout=20.0))
    assert len(server.requests) == 4
    assert recordings(tmp_path) == []


def test_the_name_can_be_checked_from_the_file(tmp_path: Path) -> None:
    import yaml

    from rag_harness.models.recording.scrubbing import request_digest

    with answering("x") as server:
        record(tmp_path, server, question="Who is John Smith?", scrub=lambda said: said.replace("John Smith", "<NAME>"))
    (file,) = recordings(tmp_path)
    asked = yaml.safe_load(file.read_text())["interactions"][0]["request"]
    assert file.stem == request_digest("POST", "/v1/chat/completions", json.loads(asked["body"]))


def test_a_replay_asks_as_the_recording_run_had_learned_to(tmp_path: Path) -> None:
    """A fresh process has only the recordings: the server that refused is gone."""
    refused = refusal(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    with serving(refused, Reply(body=WHOLE_STREAM, kind="text/event-stream")) as server:
        live = ask_recorded(recorded_settings(tmp_path, "record", server.url.removesuffix("/v1")))
    assert live.asked_without == ("temperature",)
    replayed = ask_recorded(recorded_settings(tmp_path, "replay"))
    assert (replayed.text, replayed.recorded, replayed.asked_without) == ("Yes", True, ("temperature",))


def test_a_live_run_tells_the_next_process_through_the_cache(tmp_path: Path) -> None:
    refused = refusal(400, "Unsupported parameter: 'seed'")
    with serving(refused, Reply(body=WHOLE_STREAM, kind="text/event-stream")) as server:
        for _ in range(2):
            ask_recorded(recorded_settings(tmp_path, "live", server.url.removesuffix("/v1"), seed=3))
        assert ["seed" in sent for sent in server.requests] == [True, False, False]


def test_a_recording_run_that_knew_it_from_the_cache_tells_the_replay(tmp_path: Path) -> None:
    refused = refusal(400, "Unsupported parameter: 'seed'")
    with serving(refused, Reply(body=WHOLE_STREAM, kind="text/event-stream")) as server:
        for mode in ("live", "record"):
            ask_recorded(recorded_settings(tmp_path, mode, server.url.removesuffix("/v1"), seed=3))
        assert len(server.requests) == 3
    assert ask_recorded(recorded_settings(tmp_path, "replay", seed=3, cache_dir="new")).asked_without == ("seed",)


WHOLE_STREAM = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Yes"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)
