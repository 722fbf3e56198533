"""Draws a gate as a bar: its value with the interval, against the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.gates import Gate, Reference
from rag_harness.page.charts import Estimate, IntervalBar, interval_bar
from rag_harness.page.content import Tone

_MARGIN = 1.2


def gate_bar(said: Mapping[str, Any], gate: Gate, tone: Tone, ident: str) -> str:
    """Return the bar of a gate with the verdict ``said``; empty where there is no interval to draw.

    For a comparison the bar shows the difference, against 0. A share is drawn from 0 to 1, a value without an upper
    limit from 0.
    """
    interval, value, threshold = said.get("interval"), said.get("value"), said.get("threshold")
    if not interval or value is None or threshold is None:
        return ""
    if isinstance(gate.right, Reference):
        value, threshold = value - threshold, 0.0
    low, high = interval
    ends = None if low is None else min(low, value), None if high is None else max(high, value)
    bar = IntervalBar(
        ident=ident,
        title=str(gate),
        value=Estimate(value, *ends),
        span=_span([value, threshold, *(end for end in ends if end is not None)], gate, said.get("unit", "share")),
        threshold=threshold,
        better="high" if ">" in gate.op else "low",
        tone=tone or "mute",
    )
    return interval_bar(bar)


def _span(numbers: list[float], gate: Gate, unit: str) -> tuple[float, float]:
    if isinstance(gate.right, Reference):
        reach = max(map(abs, numbers)) * _MARGIN or 1.0
        return -reach, reach
    if unit == "share" and min(numbers) >= 0 and max(numbers) <= 1:
        return 0.0, 1.0
    return min(0.0, *numbers) * _MARGIN, max(0.0, *numbers) * _MARGIN or 1.0
