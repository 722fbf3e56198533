"""Runs a server of a test in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Thread
from typing import TypeVar

_Served = TypeVar("_Served", bound=ThreadingHTTPServer)


@contextmanager
def running(server: _Served) -> Iterator[_Served]:
    """Serve in a thread until the block is left."""
    # The default poll interval makes every shutdown wait for half a second.
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
