"""A step of an agent while it runs: what went in, what came out, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.types import Call, Hit, Stage, StepKind


@dataclass
class TrialStep:
    """A step while it runs. The pipeline sets what came out; time and calls are noted.

    Attributes:
        name: what it is called; of a tool its name.
        kind: what it does.
        input: what went in, plain JSON.
        output: what came out, plain JSON; None where it is not told.
        hits: what a search or a reranker returned, best first.
        detail: notes, by name.
        calls: calls of models that it made.
        ms: milliseconds that it took, without those of steps inside it.
    """

    name: str
    kind: StepKind = ""
    input: Any = None
    output: Any = None
    hits: Sequence[Hit] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    ms: float = 0.0
    _took: float | None = field(default=None, init=False, repr=False)
    _inside: float = field(default=0.0, init=False, repr=False)

    def took(self, ms: float) -> None:
        """Say what the step took, where its time includes waiting for others."""
        self._took = ms

    def ended(self, ms: float) -> None:
        """Note that it ended after so many milliseconds, those of the steps inside it included."""
        self.ms = max(0.0, ms - self._inside) if self._took is None else self._took

    def holds(self, ms: float) -> None:
        """Note that a step inside it took so many milliseconds."""
        self._inside += ms

    def told(self) -> Stage:
        """Return the step as the row has it. A replayed call has the time of its recording."""
        spent = sum(call.ms for call in self.calls) if self.calls else self.ms
        return Stage(
            self.name, spent, tuple(self.calls), self.detail, self.kind, self.input, self.output, tuple(self.hits)
        )
