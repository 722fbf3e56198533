"""The building lock of a run. One process builds at a time; the others then find its vectors, cuts and indexes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rag_harness.settings import Settings, access_of


@contextmanager
def building_alone(settings: Settings) -> Iterator[None]:
    """Hold the run's building lock. Without a folder to keep results in, there is no lock."""
    from filelock import FileLock

    folder = settings.path(settings.cache_dir)
    if access_of(settings).keeps == "nothing" or not os.access(folder.parent, os.W_OK):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "building.lock"):
        yield
