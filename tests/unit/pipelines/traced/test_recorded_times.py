"""Rows of replayed answers have the recordings' date, and their times where it is known whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Answer, Call, PipelineOutput, Stage, Usage
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.playback import AppCalls
from rag_harness.models.recording.scrubbing import CleanedRequest
from rag_harness.pipelines.traced_app import as_recorded

CHAT = CleanedRequest("POST", "http://127.0.0.1/v1/chat/completions", {"model": "m", "messages": []})
VECTORS = CleanedRequest("POST", "http://127.0.0.1/v1/embeddings", {"model": "e", "input": "lamp"})
TOLD = PipelineOutput(
    Answer("x"),
    stages=(
        Stage("search", 5.0),
        Stage("rewrite", 2.0, (Call("rewrite", "m", Usage(1, 1, 1), 2.0),)),
        Stage("model", 3.0, (Call("answer", "m", Usage(1, 1, 1), 3.0),)),
    ),
    total_ms=11.0,
)


def recorded(ms: float, day: int, seconds: str = "00") -> Recorded:
    date = f"2026-11-{day:02}T00:00:{seconds}+00:00" if day else ""
    return Recorded(200, "application/json", b"{}", ms, None, recorded_at=date)


def test_each_step_takes_the_recorded_time_of_its_call() -> None:
    calls = AppCalls()
    calls.replay(VECTORS, recorded(7, 3))
    calls.replay(CHAT, recorded(100, 2))
    calls.replay(CHAT, recorded(1000, 4))
    found = as_recorded(TOLD, calls)
    assert [stage.ms for stage in found.stages] == [5, 102, 1003]
    assert [call.ms for call in found.calls] == [102, 1003]
    assert found.total_ms == 1111
    assert {(call.recorded, call.recorded_at) for call in found.calls} == {(True, "2026-11-02T00:00:00+00:00")}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ((3000, 2, "10.000"), (3000, 2, "10.000"), 3000),
        ((3000, 2, "10.000"), (3000, 2, "11.500"), 4500),
        ((400, 2, "10.000"), (400, 2, "10.400"), 800),
        ((400, 2, "10.000"), (400, 3, "10.000"), 800),
        # Of whole seconds, no more than a second is unknown.
        ((3000, 2, "10"), (3000, 2, "10"), 4000),
        ((300, 2, "10"), (300, 2, "10"), 600),
        ((3000, 0, ""), (3000, 2, "10.000"), 6000),
    ],
)
def test_calls_that_were_recorded_at_the_same_time_take_it_once(first: Any, second: Any, together: float) -> None:
    calls = AppCalls()
    for each in (first, second):
        calls.replay(CHAT, recorded(*each))
    found = as_recorded(TOLD, calls)
    assert [call.ms for call in found.calls] == [2 + first[0], 3 + second[0]]
    assert found.total_ms == pytest.approx(11 + together)


def test_times_of_unknown_owners_are_left_out() -> None:
    calls = AppCalls()
    calls.replay(CHAT, recorded(100, 2))
    found = as_recorded(TOLD, calls)
    assert [stage.ms for stage in found.stages] == [5, 2, 3]
    assert found.total_ms == 11
    assert all(call.recorded for call in found.calls)


@pytest.mark.parametrize("made", [True, False])
def test_an_answer_of_which_a_part_was_called_is_not_recorded(made: bool) -> None:
    calls = AppCalls()
    if made:
        calls.replay(CHAT, recorded(100, 2))
        calls.call()
    assert as_recorded(TOLD, calls) == TOLD
