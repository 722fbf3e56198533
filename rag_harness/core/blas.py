"""Threads of NumPy's matrix products."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

_lock = threading.Lock()
_blocks = 0
_before = 1


class _Controls(NamedTuple):
    get: Callable[[], int]
    set: Callable[[int], None]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute matrix products in the block on one processor, where NumPy's library is OpenBLAS.

    OpenBLAS deals a product of a few sentences to all processors. Each then waits for the next one in a loop, 30 ms
    long, and takes a processor from a model that computes meanwhile. The setting is one of the process.
    """
    global _blocks, _before  # noqa: PLW0603 - as OpenBLAS has it
    controls = _controls()
    if controls is None:
        yield
        return
    with _lock:
        if not _blocks:
            _before = controls.get()
            controls.set(1)
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                controls.set(_before)


@cache
def _controls() -> _Controls | None:
    """Return what asks for and sets the number of threads, where NumPy's wheel brings OpenBLAS; else None."""
    import ctypes

    import numpy as np

    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        for file in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(file))  # it is loaded already
            except OSError:
                continue
            for begin, end in (("scipy_openblas", "64_"), ("openblas", "64_"), ("openblas", "")):
                get, put = (getattr(library, f"{begin}_{what}_num_threads{end}", None) for what in ("get", "set"))
                if get and put:
                    return _Controls(get, put)
    return None
