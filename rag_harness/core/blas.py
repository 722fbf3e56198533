"""Threads of NumPy's matrix products."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

_lock, _limited = threading.Lock(), ExitStack()
_blocks = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute matrix products in the block on one processor.

    OpenBLAS deals a product of a few sentences to all processors. Each then waits for the next one in a loop, 30 ms
    long, and takes a processor from a model that computes meanwhile. The setting is one of the process: it holds until
    the last thread has left its block.
    """
    global _blocks  # noqa: PLW0603 - as libraries have it
    with _lock:
        if not _blocks:
            _limited.enter_context(_controller().limit(limits=1, user_api="blas"))
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                _limited.close()


@cache
def _controller() -> Any:
    """Return what sets the threads of libraries that are loaded now, NumPy's among them."""
    import numpy as np  # noqa: F401 - loads it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
