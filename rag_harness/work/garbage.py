"""Control of the garbage collector during work on many objects."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the collector off during the block, for work whose objects all stay: it would search them for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def give_back() -> None:
    """Collect garbage and return free memory to the system; for use after work on large texts."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        # glibc keeps freed memory for the thread that used it. Other C libraries lack this function.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
