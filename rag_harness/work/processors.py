"""How many processors there are to work on."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Return how many processors this process may use: fewer than the machine has, as in a container."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
