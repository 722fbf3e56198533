"""What runs the jobs of a process, and what jobs come to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from rag_harness.engine.inline import InlineLoop
from rag_harness.engine.loop import BackgroundLoop
from rag_harness.engine.trial import TrialOutcome


class NewLines(Protocol):
    """What a job came to that is no trial of the run: scores, a repeat, a derived trial."""

    @property
    def new(self) -> Iterable[bytes]:
        """What the journal lacks of it."""
        ...


JobResult: TypeAlias = TrialOutcome | NewLines
"""A trial's outcome, or what came of another job: who has submitted the job knows which, by its key."""
Engine: TypeAlias = BackgroundLoop[JobResult] | InlineLoop[JobResult]
