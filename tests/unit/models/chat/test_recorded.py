"""The chat adapter behind its recordings: what it keeps, and that nothing private is among it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError, RagHarnessError, RecordingMissError, RecordingWriteError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Message
from rag_harness.models import calls
from rag_harness.pipelines.parts import RunParts
from tests.unit.models.recording.answering import Answering, answering
from tests.unit.server import Reply, as_json, refusal, serving

KEY = "sk-planted-0123456789"


def settings(folder: Path, mode: Any, url: str = "http://127.0.0.1:9", **more: Any) -> Settings:
    known = Settings(mode=mode, profile="p", chat_model="some/model", chat_base_url=f"{url}/v1", chat_api_key=KEY)
    return replace(known, rootdir=str(folder), **more)


def ask(known: Settings, question: str = "Who?", scrub: Any = None) -> Completion:
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
    return ask(settings(folder, "record", server.url), **options)


def test_times_are_those_of_the_recorded_call(tmp_path: Path) -> None:
    with answering("John ", "Smith") as server:
        live = record(tmp_path, server)
        again = record(tmp_path, server)
        assert len(server.calls) == 1
    replayed = ask(settings(tmp_path, "replay"))
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
    replayed = ask(
        settings(tmp_path, "replay"), f"Who is John Smith? {KEY}", lambda said: said.replace("John Smith", "<NAME>")
    )
    assert replayed.text == "<NAME> has REDACTED."


def test_a_miss_does_not_say_what_is_private(tmp_path: Path) -> None:
    with pytest.raises(RecordingMissError, match=r"No recording of some/model for 'Who is <NAME>\?'") as caught:
        ask(settings(tmp_path, "replay"), "Who is John Smith?", lambda said: said.replace("John Smith", "<NAME>"))
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
        ask(settings(tmp_path, "record", server.url.removesuffix("/v1"), timeout=20.0))
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
        live = ask(settings(tmp_path, "record", server.url.removesuffix("/v1")))
    assert live.asked_without == ("temperature",)
    replayed = ask(settings(tmp_path, "replay"))
    assert (replayed.text, replayed.recorded, replayed.asked_without) == ("Yes", True, ("temperature",))


def test_a_live_run_tells_the_next_process_through_the_cache(tmp_path: Path) -> None:
    refused = refusal(400, "Unsupported parameter: 'seed'")
    with serving(refused, Reply(body=WHOLE_STREAM, kind="text/event-stream")) as server:
        for _ in range(2):
            ask(settings(tmp_path, "live", server.url.removesuffix("/v1"), seed=3))
        assert ["seed" in sent for sent in server.requests] == [True, False, False]


def test_a_recording_run_that_knew_it_from_the_cache_tells_the_replay(tmp_path: Path) -> None:
    refused = refusal(400, "Unsupported parameter: 'seed'")
    with serving(refused, Reply(body=WHOLE_STREAM, kind="text/event-stream")) as server:
        for mode in ("live", "record"):
            ask(settings(tmp_path, mode, server.url.removesuffix("/v1"), seed=3))
        assert len(server.requests) == 3
    assert ask(settings(tmp_path, "replay", seed=3, cache_dir="new")).asked_without == ("seed",)


WHOLE_STREAM = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Yes"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)
