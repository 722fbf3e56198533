"""This process as the only worker."""

from __future__ import annotations

from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.values import Opening, Ready
from rag_harness.retrieval.bulk.worker import BulkWorker


class HandHere:
    """A worker in this process, asked for one thing at a time."""

    name = "here"

    def __init__(self) -> None:
        self._worker = BulkWorker()

    def call(self, method: str, *given: object) -> object:
        """Return what a method of the worker returns."""
        return getattr(self._worker, method)(*given)


def crew_here(opening: Opening) -> tuple[Crew, Ready]:
    """Return a crew of this process alone, which does one thing after the other."""
    hand = HandHere()
    ready = hand.call("open", opening)
    assert isinstance(ready, Ready)
    return Crew([hand], each=1), ready
