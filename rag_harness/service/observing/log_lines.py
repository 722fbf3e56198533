"""Writes log lines to a stream in a thread of its own, so that logging never waits for a slow reader."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import TextIO

_MOST_WAITING = 10_000
_PATIENCE = 2.0


class LogLines(logging.Handler):
    """Formats in the calling thread, where the trace id is known, and writes in its own. Drops lines when full."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self.dropped: int = 0
        self._stream = stream
        self._queue: Queue[str | None] = Queue(_MOST_WAITING)
        self._thread = Thread(target=self._write_all, name="rag-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._queue.put_nowait(self.format(record))
        except Full:
            self.dropped += 1
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write the lines that wait, for a short time at most."""
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_PATIENCE)
            self._thread.join(_PATIENCE)
        super().close()

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            stream = self._stream or sys.stderr
            # An error here cannot be reported anywhere.
            with suppress(OSError, ValueError):
                stream.write(f"{line}\n")
                if self._queue.empty():
                    stream.flush()
