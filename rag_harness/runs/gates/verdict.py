"""The verdict of a gate, its line of text, and numbers in the unit of its measure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose, isinf
from typing import Literal

from rag_harness.runs.gates.grammar import Gate, Reference

_DIGITS = {"ms": 0, "usd": 4, "tokens": 0, "count": 1}
"""Least number of decimals, by unit; a share or a score has 3."""
_UNITS = {"ms": " ms", "tokens": " tokens"}
_MOST_DIGITS = 13


def value_with_unit(value: float, unit: str, digits: int) -> str:
    """Write a value with its unit."""
    sign = "-" if value < 0 and unit == "usd" else ""
    number = f"{abs(value) if sign else value:.{digits}f}"
    return f"{sign}${number}" if unit == "usd" else f"{number}{_UNITS.get(unit, '')}"


def share_said(share: float, interval: tuple[float, float] | None = None) -> str:
    """Write a share as a percentage, with its interval: ``8.0 % [5.0, 13.0]``."""
    between = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else ""
    return f"{100 * share:.1f} %{between}"


def told_apart(value: float, threshold: float, unit: str, same: bool) -> tuple[str, str]:
    """Write both numbers with enough digits to show that they differ, so that no line says 0.950 failed >= 0.95."""
    fewest = _DIGITS.get(unit, 3)
    for digits in range(fewest, _MOST_DIGITS):
        pair = value_with_unit(value, unit, digits), value_with_unit(threshold, unit, digits)
        if pair[0] != pair[1] or same:
            return pair
    return value_with_unit(value, unit, fewest), value_with_unit(threshold, unit, fewest)


def value_said(value: float, unit: str = "share") -> str:
    """Write a value with its unit, and with the unit's number of digits."""
    return value_with_unit(value, unit, _DIGITS.get(unit, 3))


def bounds(low: float, high: float, unit: str, signed: bool = False, digits: int = 2) -> str:
    """Write an interval in the unit of its value. An end is open where there are too few cases to bound it.

    ``digits`` is for a share or a score; other units have their own number of digits.
    """
    digits = _DIGITS.get(unit, digits)
    sign = "+" if signed else ""
    ends = ["…" if isinf(end) else f"{end:{sign}.{digits}f}" for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


VerdictState = Literal["passed", "failed", "stale", "undecided", "not judged", "xfailed", "xpassed"]
Excuse = Literal["", "suite", "data", "baseline", "drafts", "mock"]
"""Why a gate may stay without a verdict even where each must have one: the command did not select its suite, it is set
for other data, this run makes the first baseline, nobody has reviewed its questions, or the mock answered in a dry run.
"""
Interval = tuple[float, float]
_STATE_WIDTH = len("not judged")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a gate.

    ``interval`` is the 95 % interval of ``value``; an end is open where there are too few cases to bound it. Where two
    suites are compared, the interval is of their mean difference per case, and ``threshold`` is the other suite's value
    plus the gate's offset. ``unit`` is the measure's. ``bounds`` decide a gate that asks for evidence: each holds with
    the gate's confidence, and in a comparison they bound the mean difference per case. ``lacking`` says that the gate
    failed only because of missing values. ``family`` is the number of gates that were judged together, whose bounds are
    all valid at once; 0 for a gate by itself. ``unreviewed`` counts cases that were not judged because nobody has
    reviewed them; without reviewed cases, ``value`` is the value of the unreviewed ones. ``alike`` says on how many
    pages, or in how many conversations, the ``n`` cases are, where these are the clusters of their bounds. ``of``
    counts the cases whose question allows the measure, where some answers gave nothing to measure; ``declined`` of them
    say that they do not know. ``excuse`` says why a gate may stay without a verdict. A ``stale`` gate fails because its
    answers are too old. A gate that is known to fail is ``xfailed`` where it fails, which does not fail the run. It is
    ``xpassed`` where it passes, which fails the run: the mark must be removed.
    """

    gate: Gate
    state: VerdictState
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
    alike: str = ""
    of: int = 0
    declined: int = 0
    excuse: Excuse = ""

    def line(self, width: int = 0, states: int = 0) -> str:
        """Return the verdict in one line, or in more where it is too wide. The ``else`` text has a line of its own.

        The gate's condition is padded to ``width``, the state to ``states``.
        """
        states = max(states, _STATE_WIDTH, len(self.state))
        wrapped = textwrap.wrap(self.to_do, _WIDTH - states - 2, break_long_words=False, break_on_hyphens=False)
        return f"\n{' ' * (states + 2)}".join([*self._said(width, states), *wrapped])

    @property
    def to_do(self) -> str:
        """The text of the gate's ``else`` where the gate failed or is undecided; else empty."""
        text = self.gate.otherwise
        if not text or self.state not in ("failed", "undecided"):
            return ""
        return f"what to do: {text}" if self.is_due else f"undecided; if it does not hold: {text}"

    @property
    def is_due(self) -> bool:
        """Whether the ``else`` text is to be followed: the gate failed, and its value is on the wrong side.

        A gate that failed for lost or unmeasured cases has not shown that its condition is false.
        """
        if self.state != "failed" or self.lacking or self.value is None or self.threshold is None:
            return False
        return not meets_threshold(self.value, self.gate.op, self.threshold)

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
        # Where bounds decide, the reason says them. The wider interval beside them would be read as what decides.
        interval = None if self.bounds else self.interval
        if isinstance(self.gate.right, Reference):
            between = f", difference {bounds(*interval, self.unit, signed=True)}" if interval else ""
            limit = limit_said(self.gate, self.threshold, threshold, self.unit)
            return f"{value} against {limit}{between}  {self.counted}"
        between = f" {bounds(*interval, self.unit)}" if interval else ""
        return f"{value}{between}  {self.counted}"

    @property
    def counted(self) -> str:
        """How many cases have a value, and of how many clusters: ``n=142 on 30 pages``."""
        if self.gate.turns is not None:
            return f"n={self.n} conversation{'s' * (self.n != 1)}"
        number = f"n={self.n} of {self.of}" if self.of > self.n else f"n={self.n}"
        number += f" {self.alike}" if self.alike else ""
        return f"{number}, {self.declined} declined" if self.declined else number


def as_expected(verdict: Verdict, is_lost: bool) -> Verdict:
    """Return the verdict of a gate that is known to fail. Any other gate's verdict is returned as it is.

    Where cases were lost, or could not be measured, the gate has not failed for the known reason.
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
    """Return the text of gates that were not judged. A shared reason is printed once, with its gates below it."""
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


def limit_said(gate: Gate | None, threshold: float, shown: str, unit: str) -> str:
    """Return what a value is compared with: ``0.420 (baseline 0.520 - 0.1)``, where the gate has an offset.

    ``shown`` is the threshold as text.
    """
    right = gate.right if gate is not None else None
    if not isinstance(right, Reference) or not right.offset:
        return shown
    other = value_said(threshold - right.offset, unit)
    return f"{shown} ({right.name} {other}{str(right).removeprefix(right.name)})"


def equal(value: float, threshold: float) -> bool:
    """Whether two values are equal except for rounding."""
    return isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)


def meets_threshold(value: float, op: str, threshold: float) -> bool:
    """Whether a value is on the side of the threshold that the operator asks for."""
    return "=" in op if equal(value, threshold) else (value > threshold) == (">" in op)
