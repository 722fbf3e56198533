"""Sources are parsed in half of the time where nobody looks for garbage among the nodes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_looked_for() -> Iterator[None]:
    """A million nodes are made, and none is garbage: each look at all of them finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
