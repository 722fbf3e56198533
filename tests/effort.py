"""Checks that work ends, or grows as its input does. How fast it is, `benchmarks/` measures."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SHORT, _LINEAR, _MOST = 0.1, 8.0, 1e-5
_TRIES = 3


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking through all that thousands of other tests have left."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Check that the block takes ``seconds`` of this thread at most: ten times what it takes, or more.

    It tells work that explodes from work that ends; other processes and the collector do not count.
    """
    with without_garbage_collection():
        began = time.thread_time()
        yield
    took = time.thread_time() - began
    assert took < seconds, f"{took:.1f} s of the processor"


def spent(work: Callable[[], object]) -> float:
    """Return the seconds of this thread that ``work`` takes."""
    with without_garbage_collection():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def check_growth(work: Callable[[str], object], text: str) -> None:
    """Check that time of the processor grows as the text does: at most twice as fast, and 2 s for 200 kB."""
    for _ in range(_TRIES):  # other work on the machine takes caches away: the least busy look counts
        quarter, whole = spent(lambda: work(text[: len(text) // 4])), spent(lambda: work(text))
        if whole < _SHORT or whole < _LINEAR * quarter:
            break
    assert whole < _SHORT or whole < _LINEAR * quarter, (quarter, whole)
    assert whole < _MOST * len(text), (quarter, whole)


def instructions(work: Callable[[], object]) -> int:
    """Return how many instructions of Python ``work`` executes: the same number however busy the machine is."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
