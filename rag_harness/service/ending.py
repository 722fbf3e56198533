"""Makes a server end when it is told to, however busy its threads and its loop are."""

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
    """Give a uvicorn server that calls ``leave`` after ``seconds`` once it is told to end.

    If the block is left in time, ``leave`` is not called.
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
