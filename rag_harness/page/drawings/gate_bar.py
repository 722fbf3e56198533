"""Draws a gate as a bar: its value with the interval, or the bounds that decide, against the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from rag_harness.gates import Gate, Reference
from rag_harness.gates.decisive import decisive_ends
from rag_harness.page.charts import Estimate, IntervalBar, interval_bar
from rag_harness.page.content import Tone

_MARGIN = 1.05
_UNITS = {"ms": "ms", "usd": "US dollars", "tokens": "tokens"}


def gate_bar(said: Mapping[str, Any], gate: Gate, tone: Tone, ident: str) -> str:
    """Return the bar of a gate with the verdict ``said``; empty where there is no interval to draw.

    For a comparison the bar shows the difference, against what it must be; its scale has 0 in the middle, signs, and
    the name of the other. A share or a score is drawn from 0 to 1, a value without an upper limit from 0, with its
    unit.
    """
    interval, value, threshold = decisive_ends(said), said.get("value"), said.get("threshold")
    if interval is None or value is None or threshold is None:
        return ""
    unit = said.get("unit", "share")
    other = gate.right if isinstance(gate.right, Reference) else None
    if other:
        # The interval is that of the difference, and the threshold is the other's value plus the offset.
        value, threshold = value - threshold + other.offset, other.offset
    low, high = interval
    ends = min(low, value) if isfinite(low) else None, max(high, value) if isfinite(high) else None
    bar = IntervalBar(
        ident=ident,
        title=str(gate),
        value=Estimate(value, *ends),
        span=_span([value, threshold, *(end for end in ends if end is not None)], gate, unit),
        threshold=threshold,
        better="high" if ">" in gate.op else "low",
        tone=tone or "mute",
        is_signed=other is not None,
        unit=f"difference to {other.name}" if other else _UNITS.get(unit, ""),
    )
    return interval_bar(bar)


def _span(numbers: list[float], gate: Gate, unit: str) -> tuple[float, float]:
    if isinstance(gate.right, Reference):
        reach = max(map(abs, numbers)) * _MARGIN or 1.0
        return -reach, reach
    if unit in ("share", "score") and min(numbers) >= 0 and max(numbers) <= 1:
        return 0.0, 1.0
    return min(0.0, *numbers) * _MARGIN, max(0.0, *numbers) * _MARGIN or 1.0
