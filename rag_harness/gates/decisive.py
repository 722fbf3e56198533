"""What decides a gate, for people: the bound beside its value, so that figure and verdict never contradict each other.

A gate with ``@`` is decided by a one-sided bound. The two-sided 95 % interval of its value is wider: its end may lie
beyond the threshold of a gate that has passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from rag_harness.gates.evidence import bound_said, decided
from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.units import bounds
from rag_harness.gates.verdict import Interval

_DECIDED = ("passed", "failed")


def how_sure(said: Mapping[str, Any], gate: Gate | None, digits: int = 2) -> str:
    """Return what stands beside a gate's value: ``at least 0.502``; empty where there is nothing to say.

    Of a gate with ``@`` it is the bound that decides, or both where they leave it open. Of any other it is the 95 %
    interval, with ``digits`` decimals of a share.

    Args:
        said: the verdict, as ``summary.json`` has it.
        gate: the gate; None where its text cannot be read.
    """
    unit, found = said.get("unit", "share"), ends(said.get("bounds"))
    is_difference = gate is not None and isinstance(gate.right, Reference)
    if found is not None and gate is not None and said.get("threshold") is not None:
        target = _target(gate, said)
        return bound_said(found, gate, target, unit, decided(found, gate.op, target), "between {} and {}")
    between = ends(said.get("interval"))
    # Without bounds something else has decided, such as an early stop: its reason says what.
    if between is None or ("confidence" in said and said["state"] in _DECIDED):
        return ""
    difference = "difference " if is_difference else ""
    return difference + bounds(*between, unit, signed=is_difference, digits=digits)


def beside_bounds(said: Mapping[str, Any], gate: Gate | None) -> str:
    """Return the reason of a verdict without the bounds that ``how_sure`` says, and without which cases these are for.

    Args:
        said: the verdict, as ``summary.json`` has it.
        gate: the gate; None where its text cannot be read.
    """
    reason, found = str(said.get("reason") or ""), ends(said.get("bounds"))
    if found is None or gate is None or said.get("threshold") is None:
        return reason
    target = _target(gate, said)
    stated = bound_said(found, gate, target, said.get("unit", "share"), decided(found, gate.op, target))
    before, is_there, after = reason.partition(f"{stated} for ")
    if not is_there:
        return reason
    after = after.removeprefix(f"{gate.counts} like these").lstrip(",; ")
    return "; ".join(filter(None, [before.rstrip(",; "), after]))


def decisive_ends(said: Mapping[str, Any]) -> Interval | None:
    """Return the ends of what ``how_sure`` says: the bounds of a gate with ``@``, else the interval; None for none."""
    return ends(said.get("bounds")) or ends(said.get("interval"))


def ends(interval: Sequence[float | None] | None) -> Interval | None:
    """Return the ends of an interval in ``summary.json``; an open one, null there, is infinite."""
    if not interval:
        return None
    low, high = interval
    return -inf if low is None else low, inf if high is None else high


def _target(gate: Gate, said: Mapping[str, Any]) -> float:
    """Return what the bounds are compared with: the threshold, or the offset where they bound a difference."""
    return gate.right.offset if isinstance(gate.right, Reference) else float(said["threshold"])
