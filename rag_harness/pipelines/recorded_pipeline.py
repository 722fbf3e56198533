"""A pipeline of a user's own whose HTTP calls are recorded and replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from rag_harness.models.recording.app_calls import AppCalls, answering_app
from rag_harness.pipelines.calling import as_output, called
from rag_harness.registry.own_parts import stated_fingerprint
from rag_harness.types import PipelineOutput, Query


class RecordedPipeline:
    """Asks ``app``, an object with ``answer(query)``, and notes what becomes of its HTTP calls."""

    def __init__(self, app: Any) -> None:
        self.app = app

    @property
    def fingerprint(self) -> str:
        """What the app says that its answers hang on."""
        return stated_fingerprint(self.app)

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer a query. An answer whose HTTP calls were all replayed has the date of the oldest of them.

        Raises:
            RecordingMissError: what the app has called is not recorded, and this mode calls nobody.
            TypeError: the app returned something that is no answer.
        """
        name, started = type(self.app).__name__, perf_counter()
        answered, calls = await called_noting(self.app.answer, query, f"{name}.answer")
        output = as_output(answered, name)
        recorded_at = calls.recorded_at
        if recorded_at is None or output.recorded_at:
            return output
        total_ms = (perf_counter() - started) * 1000 + calls.chat_elapsed_ms
        return replace(output, recorded_at=recorded_at, total_ms=output.total_ms or total_ms)


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
