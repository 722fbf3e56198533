"""Reads the times that stand in files."""

from __future__ import annotations

from datetime import datetime
from math import nan


def seconds_of(said: str) -> float:
    """Return an ISO 8601 time as seconds since 1970; NaN for other text, which a row of another program may have."""
    try:
        return datetime.fromisoformat(said).timestamp() if said else nan
    except ValueError:
        return nan
