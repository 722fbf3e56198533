"""A server in a thread of this process, on a port that is free."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

START_S = 20.0


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on 127.0.0.1; yield its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            _wait(server)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(START_S)
    assert not thread.is_alive(), "the server did not end"


def _wait(server: Any) -> None:
    until = time.monotonic() + START_S
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.01)
