"""How a gate came out, and the line that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import Literal

from rag_harness.gates.grammar import Gate, Reference

State = Literal["passed", "failed", "not judged", "silent"]
Interval = tuple[float, float]
_STATE_WIDTH = len("not judged")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a gate came out.

    ``interval`` is the 95 % interval of ``value``; where two suites are compared, of their mean difference per case,
    and ``threshold`` is then what the other suite has, with the gate's offset.
    """

    gate: Gate
    state: State
    value: float | None = None
    threshold: float | None = None
    n: int = 0
    interval: Interval | None = None
    reason: str = ""

    def line(self, width: int = 0) -> str:
        """Return the verdict in one line; the gate's text is padded to ``width``."""
        parts = [f"{self.state:<{_STATE_WIDTH}}  {self.gate!s:<{width}}", self._numbers(), self.reason]
        return "   ".join(part for part in parts if part)

    def _numbers(self) -> str:
        if self.value is None or self.threshold is None:
            return ""
        value, threshold = _told_apart(self.value, self.threshold)
        if isinstance(self.gate.right, Reference):
            bounds = f", difference [{self.interval[0]:+.2f}, {self.interval[1]:+.2f}]" if self.interval else ""
            return f"{value} against {threshold}{bounds}  n={self.n}"
        bounds = f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]" if self.interval else ""
        return f"{value}{bounds}  n={self.n}"


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line for each gate that has something to say, aligned."""
    spoken = [each for each in verdicts if each.state != "silent"]
    width = max((len(str(each.gate)) for each in spoken), default=0)
    return [each.line(width) for each in spoken]


def equal(value: float, threshold: float) -> bool:
    """Whether two means are the same but for rounding."""
    return isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)


def _told_apart(value: float, threshold: float) -> tuple[str, str]:
    """Write both with as many digits as show that they differ, so that no line says 0.950 failed >= 0.95."""
    for digits in range(3, 13):
        pair = f"{value:.{digits}f}", f"{threshold:.{digits}f}"
        if pair[0] != pair[1] or equal(value, threshold):
            break
    return (f"{value:.3f}", f"{threshold:.3f}") if pair[0] == pair[1] else pair
