"""A server that is told to end does end, whatever its threads and its loop are busy with."""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn


def ending_within(seconds: float, leave: Callable[[], None]) -> type[uvicorn.Server]:
    """Return uvicorn's server as one that calls ``leave`` where it has not ended ``seconds`` after it was told to."""
    import uvicorn

    class Ending(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if not self.should_exit:
                late = Timer(seconds, leave)
                late.daemon = True
                late.start()
            super().handle_exit(sig, frame)

    return Ending
