"""One process builds at a time; the others find vectors, cuts and indexes made when their turn comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rag_harness.settings import Settings, access_of


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Hold the run's building lock; where nothing may be kept there is nothing to wait for."""
    from filelock import FileLock

    folder = settings.path(settings.cache_dir)
    if access_of(settings).keeps == "nothing" or not os.access(folder.parent, os.W_OK):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "building.lock"):
        yield
