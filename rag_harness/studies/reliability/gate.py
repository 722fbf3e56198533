"""The gate before the model: go on, search again or stop, by the quality of the retrieved sources."""

from __future__ import annotations

from typing import Literal

from rag_harness.settings.reliability_numbers import Thresholds
from rag_harness.types import Decision

Way = Literal["go on", "fallback", "abstain"]
MOST_FALLBACKS = 2


def way(found: float, thresholds: Thresholds, tried: int = 0) -> Way:
    """Return what to do at retrieval quality ``found`` after ``tried`` fallbacks. After the last one, go on or stop."""
    if found < thresholds.fallback:
        return "abstain"
    return "go on" if found > thresholds.go_on or tried >= MOST_FALLBACKS else "fallback"


def decision(found: float, thresholds: Thresholds, tried: int) -> Decision:
    """Return the gate's final decision for the row."""
    outcome = way(found, thresholds, MOST_FALLBACKS)
    limit = thresholds.fallback if outcome == "abstain" else thresholds.go_on
    return Decision("gate", outcome, found, limit, f"after {tried} fallbacks" if tried else "")
