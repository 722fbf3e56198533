"""A crew whose only worker is this process."""

from __future__ import annotations

from rag_harness.retrieval.bulk.bulk_messages import IngestOpening, ReadyWorker
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.worker import BulkWorker


class HandHere:
    """A worker in this process, which does one job at a time."""

    name = "here"

    def __init__(self) -> None:
        self._worker = BulkWorker()

    def call(self, method: str, *given: object) -> object:
        """Call a method of the worker and return the result."""
        return getattr(self._worker, method)(*given)


def crew_here(opening: IngestOpening) -> tuple[Crew, ReadyWorker]:
    """Return a crew of only this process, which does one job after the other."""
    hand = HandHere()
    ready = hand.call("open", opening)
    assert isinstance(ready, ReadyWorker)
    return Crew([hand], each=1), ready
