"""Dates and times of an app's answer whose HTTP calls were replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rag_harness.models.recording.app_calls import AppCalls
from rag_harness.types import PipelineOutput, Stage


def as_recorded(told: PipelineOutput, calls: AppCalls) -> PipelineOutput:
    """Return an output with the date of the oldest recording, if all HTTP calls of the app were replayed.

    A model's step then takes its recorded time longer, where each step is one chat completion that was replayed, and
    the whole takes longer by what all of them took, at once or one after the other. Otherwise it is unknown whose time
    is whose, and the times are those of the replay.
    """
    recorded_at = calls.recorded_at
    if recorded_at is None:
        return told
    is_known = len(told.calls) == len(calls.chat_ms)
    more = iter(calls.chat_ms if is_known else [0.0] * len(told.calls))
    stages = tuple(_as_recorded(stage, recorded_at, more) for stage in told.stages)
    total_ms = None if told.total_ms is None else told.total_ms + calls.chat_elapsed_ms * is_known
    return replace(told, stages=stages, total_ms=total_ms)


def _as_recorded(stage: Stage, recorded_at: str, more: Iterator[float]) -> Stage:
    asked = [(call, next(more)) for call in stage.calls]
    done = (replace(call, recorded=True, recorded_at=recorded_at, ms=call.ms + ms) for call, ms in asked)
    return replace(stage, calls=tuple(done), ms=stage.ms + sum(ms for _, ms in asked))
