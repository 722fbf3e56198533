"""In replay nothing opens an internet socket: an attempt is an error that names who made it.

Python's audit events are seen whichever library connects; a hook cannot be taken out again, so it is put in once and
asks whether the guard is up.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Collection
from typing import Any

from rag_harness.errors import RecordingMissError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine, to itself."""

_FAMILIES = {2, 10, 23, 30}
"""AF_INET and AF_INET6, by the numbers of Linux, Windows and macOS. AF_UNIX stays: asyncio needs it."""

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")


class _Guard:
    """Whether attempts are refused, and which hosts are let through."""

    up = False
    installed = False
    allowed: Collection[str] = ()

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.up or event not in (*_LOOKUPS, *_SENDS):
            return
        host = self._host(event, args)
        if host is not None and host not in self.allowed:
            raise RecordingMissError(f"Replay opens no connection, but {_caller()} asked for {host}.")

    def _host(self, event: str, args: tuple[Any, ...]) -> str | None:
        if event in _LOOKUPS:
            # Without a host it is a question about this machine, which a server asks before it listens.
            return (args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]) or None
        connection, address = args[0], args[1]
        if getattr(connection, "family", 0) not in _FAMILIES or not isinstance(address, tuple):
            return None
        return str(address[0])


_guard = _Guard()


def refuse_connections(allowed: Collection[str] = ()) -> None:
    """Refuse every internet connection and look-up of a name from now on, but to the hosts in ``allowed``."""
    if not _guard.installed:
        sys.addaudithook(_guard.hook)
        _guard.installed = True
    _guard.up, _guard.allowed = True, allowed


def allow_connections() -> None:
    """Let connections through again."""
    _guard.up = False


def _caller() -> str:
    """Name the nearest frame outside the standard library's networking and this module."""
    quiet = ("socket.py", "network_guard.py", "selectors.py", "base_events.py", "selector_events.py")
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.endswith(quiet)]
    return f"{frames[-1].filename}:{frames[-1].lineno} ({frames[-1].name})" if frames else "somebody"
