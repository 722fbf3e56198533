"""A pipeline of a user's own whose HTTP calls are recorded and replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from rag_harness.models.recording.app_calls import AppCalls, answering_app
from rag_harness.pipelines.calling import called
from rag_harness.pipelines.returned import output_of
from rag_harness.registry.own_parts import stated_fingerprint, stated_truth
from rag_harness.types import PipelineOutput, Query

ReplayedBefore = Callable[[], str]
"""Returns when the oldest recording was made that a pipeline was set up from; empty without one."""


class ReplayedParts:
    """Dates answers by the recordings behind them.

    Args:
        in_set_up: returns the date of what was replayed while the pipeline was made.
    """

    def __init__(self, in_set_up: ReplayedBefore = lambda: "") -> None:
        self._in_set_up, self._earlier = in_set_up, ""

    def dated(self, output: PipelineOutput, calls: AppCalls) -> PipelineOutput:
        """Return an answer with the date of the oldest recording behind it.

        An answer without any call may hang on what an earlier answer has replayed, in a cache of the pipeline.
        """
        self._earlier = _oldest(self._earlier, calls.oldest)
        is_replayed = calls.recorded_at is not None
        cached = "" if is_replayed or calls.has_called else self._earlier
        recorded_at = _oldest(output.recorded_at, calls.oldest, cached, self._in_set_up())
        return replace(output, recorded_at=recorded_at, replayed=output.replayed or is_replayed)


class RecordedPipeline:
    """Asks ``app``, an object with ``answer(query)``, and notes what becomes of its HTTP calls."""

    def __init__(self, app: Any, parts: ReplayedParts) -> None:
        self.app, self._parts = app, parts

    @property
    def fingerprint(self) -> str:
        """What the app says that its answers hang on."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer a query. An answer that hangs on recordings has the date of the oldest of them.

        Raises:
            RecordingMissError: what the app has called is not recorded, and this mode calls nobody.
            TypeError: the app returned something that is no answer.
        """
        name, started = type(self.app).__name__, perf_counter()
        answered, calls = await called_noting(self.app.answer, query, f"{name}.answer")
        output = self._parts.dated(output_of(answered, f"{name}.answer"), calls)
        if calls.recorded_at is None or output.total_ms is not None:
            return output
        return replace(output, total_ms=(perf_counter() - started) * 1000 + calls.chat_elapsed_ms)


async def called_noting(function: Callable[[Any], Any], given: Any, name: str) -> tuple[Any, AppCalls]:
    """Return what ``function`` returns for ``given``, and what became of its HTTP calls.

    Raises:
        RecordingMissError, RecordingWriteError: a call was refused, or its answer was not kept. A function that goes on
            without an answer would do otherwise here than it does where the model is asked.
    """
    with answering_app() as calls:
        try:
            returned = await called(function, given, name)
        except Exception as error:
            if calls.refused is None:
                raise
            raise calls.refused from error
    if calls.refused is not None:
        raise calls.refused
    return returned, calls


def _oldest(*dates: str) -> str:
    return min(filter(None, dates), default="")
