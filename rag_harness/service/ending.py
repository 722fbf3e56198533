"""A server that is told to end does end, whatever its threads and its loop are busy with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn


@contextmanager
def ending_within(seconds: float, leave: Callable[[], None]) -> Iterator[type[uvicorn.Server]]:
    """Give uvicorn's server as one that counts from when it is told to end: ``leave`` is called after ``seconds``.

    Who leaves the block in time has ended.
    """
    import uvicorn

    late = Timer(seconds, leave)
    late.daemon = True

    class Ending(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if late.ident is None:
                late.start()
            super().handle_exit(sig, frame)

    try:
        yield Ending
    finally:
        late.cancel()
        if late.ident is not None:
            late.join()
