"""Reads a gate from ``summary.json``: its text and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.gates import Gate, Reference
from rag_harness.page.content import Tone
from rag_harness.page.figures import NONE, interval_said
from rag_harness.page.run import Run

TONES: Mapping[str, Tone] = {
    "passed": "good",
    "failed": "bad",
    "stale": "bad",
    "xpassed": "bad",
    "inconclusive": "unsure",
    "xfailed": "unsure",
}


def cutoff(run: Run) -> int:
    """Return the run's k, which ``@k`` stands for."""
    return int(run.manifest.settings.get("k") or 10)


def between(said: Mapping[str, Any], unit: str, gate: Gate | None) -> str:
    """Return the interval of the value, or of the difference where a gate compares two suites."""
    if not said.get("interval"):
        return NONE
    low, high = said["interval"]
    if gate is not None and isinstance(gate.right, Reference):
        return f"difference {interval_said(low, high, unit, signed=True)}"
    return interval_said(low, high, unit)
