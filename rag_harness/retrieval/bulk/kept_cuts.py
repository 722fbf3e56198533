"""Storage of the workers' cuts, which are moved to the run's cache when the work is over.

A store has the keys of all its entries in memory. If workers saw new cuts at once, their memory would grow with every
window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from rag_harness.errors import RecordingWriteError
from rag_harness.models.recording.stores import StoreRoom
from rag_harness.retrieval.bulk.bulk_messages import KeptArrays
from rag_harness.settings import Settings, access_of


class KeptCuts:
    """Segments in a waiting folder beside those of the cache.

    Args:
        settings: settings with the place of the cache.
        waiting: an empty folder on the same disk.
    """

    def __init__(self, settings: Settings, waiting: Path) -> None:
        self._settings, self._waiting, self._numbers = settings, waiting, count()

    def add(self, kept: KeptArrays) -> None:
        """Write the cuts of one window."""
        if not kept:
            return
        # A folder of its own, because a store reads all segments in the folder that it writes to.
        there = self._waiting / str(next(self._numbers))
        room = StoreRoom(replace(self._settings, cache_dir=str(there / "cache"), cassettes=str(there / "cassettes")))
        for name, arrays in kept.items():
            room.open(*name).put(arrays)
        room.flush()

    def move(self) -> None:
        """Move all segments into the cache. Each has a name made from its entries."""
        folders = {name: self._settings.path(getattr(self._settings, name)) for name in ("cache_dir", "cassettes")}
        for name, folder in folders.items():
            above = name.removesuffix("_dir")
            for file in sorted(self._waiting.glob(f"*/{above}/**/*.safetensors")):
                place = folder.joinpath(*file.relative_to(self._waiting).parts[2:])
                place.parent.mkdir(parents=True, exist_ok=True)
                file.replace(place)


@contextmanager
def keeping_cuts(settings: Settings) -> Iterator[Callable[[KeptArrays], None]]:
    """Yield a storage for cuts during the block, then move the cuts into the cache.

    Raises:
        RecordingWriteError: the cuts cannot be written.
    """
    keeps = access_of(settings).keeps
    if keeps == "nothing":
        yield lambda _: None
        return
    folder = settings.path(settings.cassettes if keeps == "recordings" else settings.cache_dir)
    with ExitStack() as stack:
        with _speaking(folder):
            folder.mkdir(parents=True, exist_ok=True)
            waiting = stack.enter_context(TemporaryDirectory(prefix="cuts-", dir=folder))
        kept = KeptCuts(settings, Path(waiting))
        try:
            yield kept.add
        finally:
            with _speaking(folder):
                kept.move()


@contextmanager
def _speaking(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordingWriteError(
            f"Cuts cannot be kept in {folder}: {error.strerror or error}. Make room, or name another folder: "
            f"--rag-cassettes, --rag-cache-dir."
        ) from error
