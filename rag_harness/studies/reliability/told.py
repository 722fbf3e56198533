"""Signals in the form of a row's decisions, for people and for calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_harness.judges.calibration.told import SIGNAL
from rag_harness.types import Decision


def decisions_of(signals: Mapping[str, float | None], reasons: Iterable[tuple[str, str]]) -> tuple[Decision, ...]:
    """Return one decision for each signal; ``reasons`` say why it was not measured, or what to know about its value."""
    why = dict(reasons)
    return tuple(
        Decision(f"{SIGNAL}{name}", "" if value is not None else "not measured", value, reason=why.get(name, ""))
        for name, value in signals.items()
    )
