"""How a gate came out, and the line that says so."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Literal

from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.units import bounds, told_apart

State = Literal["passed", "failed", "stale", "inconclusive", "not judged", "xfailed", "xpassed"]
Interval = tuple[float, float]
_STATE_WIDTH = len("not judged")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a gate came out.

    ``interval`` is the 95 % interval of ``value``, open where the cases are too few to bound it; where two suites are
    compared, of their mean difference per case, and ``threshold`` is then what the other suite has, with the gate's
    offset. ``unit`` is the measure's. ``bounds`` decide a gate that asks for evidence: each of them holds with its
    confidence; of a comparison, they are of the mean difference per case. ``lacking`` fails for want of values alone.
    ``family`` gates were judged together, whose bounds hold all at once; 0 of a gate by itself.
    ``unreviewed`` cases were not judged, for nobody has reviewed them; where there are no others the value is theirs.
    A ``stale`` gate fails: it is about answers that are too old. One that is known to fail has ``xfailed`` where it
    does, which fails nothing, and ``xpassed`` where it does not, which fails: its mark is to be taken off.
    """

    gate: Gate
    state: State
    value: float | None = None
    threshold: float | None = None
    n: int = 0
    interval: Interval | None = None
    reason: str = ""
    unit: str = "share"
    bounds: Interval | None = None
    lacking: bool = False
    unreviewed: int = 0
    family: int = 0

    def line(self, width: int = 0, states: int = 0) -> str:
        """Return the verdict in a line, or more where it would be too wide; what to do has a line of its own.

        The gate's condition is padded to ``width``, the state to ``states``.
        """
        states = max(states, _STATE_WIDTH, len(self.state))
        wrapped = textwrap.wrap(self.to_do, _WIDTH - states - 2, break_long_words=False, break_on_hyphens=False)
        return f"\n{' ' * (states + 2)}".join([*self._said(width, states), *wrapped])

    @property
    def is_on_drafts(self) -> bool:
        """Whether it was not judged because nobody has reviewed its cases."""
        return self.state == "not judged" and self.unreviewed > 0

    @property
    def to_do(self) -> str:
        """What the gate's ``else`` has a person do, or would where that is open; empty where there is nothing to do."""
        text = self.gate.otherwise
        if not text or self.state not in ("failed", "inconclusive"):
            return ""
        return f"what to do: {text}" if self.is_due else f"undecided; would be: {text}"

    @property
    def is_due(self) -> bool:
        """Whether what the gate's ``else`` says is to be done: it failed, and its value is on the wrong side.

        One that failed because cases were lost, or could not be measured, has not shown that its condition fails.
        """
        if self.state != "failed" or self.lacking or self.value is None or self.threshold is None:
            return False
        return not holds(self.value, self.gate.op, self.threshold)

    def _said(self, width: int, states: int) -> list[str]:
        narrow = f"{self.state:<{states}}  {self.gate.condition}"
        head = narrow.ljust(states + 2 + width)
        parts = [part for part in (self._numbers(), self.reason) if part]
        line = "   ".join([head, *parts])
        if len(line) <= _WIDTH:
            return [line]
        first = next((h for h in (head, narrow) if parts and len(f"{h}   {parts[0]}") <= _WIDTH), "")
        lines = [f"{first}   {parts.pop(0)}"] if first else [narrow]
        room = _WIDTH - states - 2
        lines += [wrapped for part in parts for wrapped in textwrap.wrap(part, room, break_on_hyphens=False)]
        return lines

    def _numbers(self) -> str:
        if self.value is None or self.threshold is None:
            return ""
        value, threshold = told_apart(self.value, self.threshold, self.unit, equal(self.value, self.threshold))
        if isinstance(self.gate.right, Reference):
            between = f", difference {bounds(*self.interval, self.unit, signed=True)}" if self.interval else ""
            return f"{value} against {threshold}{between}  n={self.n}"
        between = f" {bounds(*self.interval, self.unit)}" if self.interval else ""
        return f"{value}{between}  n={self.n}"


def as_expected(verdict: Verdict, is_lost: bool) -> Verdict:
    """Return the verdict of a gate that is known to fail; as it is where it says nothing of that.

    Where cases were lost, or could not be measured, the gate has not failed for the reason that is known.
    """
    gate = verdict.gate
    if not gate.expected:
        return verdict
    if verdict.state == "passed":
        said = f"it passes now: take 'xfail' off. It was marked: {gate.expected}"
        return replace(verdict, state="xpassed", reason="; ".join(part for part in (said, verdict.reason) if part))
    if not verdict.is_due or is_lost:
        return verdict
    said = f"expected: {gate.expected}"
    return replace(verdict, state="xfailed", reason="; ".join(part for part in (said, verdict.reason) if part))


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the text of each gate, aligned where that fits; at most 100 columns wide."""
    width = max((len(verdict.gate.condition) for verdict in verdicts), default=0)
    states = max((len(verdict.state) for verdict in verdicts), default=0)
    return [verdict.line(width, states) for verdict in verdicts]


def together(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the text of gates that were not judged: a reason that several share once, and below it those gates."""
    by_reason: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_reason.setdefault(verdict.reason, []).append(verdict)
    return [_with_reason(reason, found) for reason, found in by_reason.items()]


def _with_reason(reason: str, verdicts: Sequence[Verdict]) -> str:
    if len(verdicts) == 1:
        return verdicts[0].line()
    indent = " " * (_STATE_WIDTH + 2)
    return "\n".join([f"not judged  {reason}", *_listed([verdict.gate.condition for verdict in verdicts], indent)])


def _listed(conditions: Sequence[str], indent: str) -> list[str]:
    text = "; ".join(condition.replace(" ", "\0") for condition in conditions)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
    return [line.replace("\0", " ") for line in lines]


def equal(value: float, threshold: float) -> bool:
    """Whether two values are the same but for rounding."""
    return isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)


def holds(value: float, op: str, threshold: float) -> bool:
    """Whether a value is on the side of the threshold that the operator asks for."""
    return "=" in op if equal(value, threshold) else (value > threshold) == (">" in op)
