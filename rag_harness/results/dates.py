"""Times as files have them."""

from __future__ import annotations

from datetime import datetime
from math import nan


def seconds_of(said: str) -> float:
    """Return an ISO 8601 time as seconds since 1970; NaN where it is none, as in a row of somebody else's making."""
    try:
        return datetime.fromisoformat(said).timestamp() if said else nan
    except ValueError:
        return nan
