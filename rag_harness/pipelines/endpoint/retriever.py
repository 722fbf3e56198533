"""The retriever of a service, for the golden suite. It ranks the contexts of the service's answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from time import perf_counter
from typing import Any

from rag_harness.types import Call, Hit, PipelineOutput, Query

Answer = Callable[[Query], Awaitable[PipelineOutput]]


class EndpointRetriever:
    """Returns the contexts of a service.

    Args:
        answer: asks the service.
        run: runs a coroutine on the loop of the trials and waits for it.
    """

    def __init__(self, answer: Answer, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.shared, self._run = _Asked(answer), run

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the contexts of the answer, in its order, ``k`` at most."""
        hits, *_ = self._run(self.shared.ask((query, k)))
        return list(hits)


class _Asked:
    """Asks the service on the loop of the trials, in the same way as shared stages."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def ask(self, args: tuple[str, int]) -> tuple[list[Hit], float, list[Call]]:
        """Return the hits, the service's milliseconds (recorded ones in a replay), and the calls."""
        query, k = args
        started = perf_counter()
        output = await self._answer(Query("", query))
        spent = sum(stage.ms for stage in output.stages) or (perf_counter() - started) * 1000
        return list(output.retrieved[:k]), spent, list(output.calls)
