"""Go on, search again, or stop before a model is asked: by the quality of what was found."""

from __future__ import annotations

from typing import Literal

from rag_harness.studies.reliability.thresholds import Thresholds
from rag_harness.types import Decision

Way = Literal["go on", "fallback", "abstain"]
MOST_FALLBACKS = 2


def way(found: float, thresholds: Thresholds, tried: int = 0) -> Way:
    """Return what to do with retrieval of quality ``found`` after ``tried`` fallbacks; the last one ends them."""
    if found < thresholds.fallback:
        return "abstain"
    return "go on" if found > thresholds.go_on or tried >= MOST_FALLBACKS else "fallback"


def decision(found: float, thresholds: Thresholds, tried: int) -> Decision:
    """Return the gate's last word for the row."""
    outcome = way(found, thresholds, MOST_FALLBACKS)
    limit = thresholds.fallback if outcome == "abstain" else thresholds.go_on
    return Decision("gate", outcome, found, limit, f"after {tried} fallbacks" if tried else "")
