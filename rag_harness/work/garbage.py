"""Work whose objects all stay: the collector need not look through them again and again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def uncollected() -> Iterator[None]:
    """Do without the collector, and put it back as it was."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def give_back() -> None:
    """Free what only refers to itself, and let the system have memory that is free: after work on large texts."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        # glibc keeps freed memory of a thread for it; other libraries of C have no such function.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
