"""A guard that makes internet sockets an error in a replay, and proxies from the environment."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rag_harness.core.errors import RecordingMissError

# A guard for replay: opening an internet socket is an error that names the code that tried it.
#
# Python's audit events report every library. A hook cannot be removed, so it is added once and checks whether the guard
# is on.

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine for itself."""

_FAMILIES = {2, 10, 23, 30}
"""AF_INET and AF_INET6, as numbers of Linux, Windows and macOS. AF_UNIX is allowed, because asyncio needs it."""

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")


def internet_address(connection: Any, address: Any) -> tuple[str, int] | None:
    """Return the host and port of a socket's address; None where it is not an address of the internet."""
    if getattr(connection, "family", 0) not in _FAMILIES or not isinstance(address, tuple):
        return None
    return str(address[0]), int(address[1])


class _Guard:
    """The state of the guard: whether connections are refused, and the allowed hosts."""

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
            # Without a host, the lookup is for this machine. A server does that before it listens.
            return (args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]) or None
        address = internet_address(args[0], args[1])
        return None if address is None else address[0]


_guard = _Guard()


def refuse_connections(allowed: Collection[str] = ()) -> None:
    """Refuse all internet connections and name lookups from now on, except for hosts in ``allowed``."""
    if not _guard.installed:
        sys.addaudithook(_guard.hook)
        _guard.installed = True
    _guard.up, _guard.allowed = True, allowed


def allow_connections() -> None:
    """Allow all connections again."""
    _guard.up = False


@contextmanager
def closed_network(server: str) -> Iterator[None]:
    """Refuse all connections in the block, except to this machine where ``server``, a URL, lies on it."""
    refuse_connections(LOOPBACK if urlsplit(server).hostname in LOOPBACK else ())
    try:
        yield
    finally:
        allow_connections()


def _caller() -> str:
    """Return the nearest frame outside this module and the standard library's networking, as text."""
    quiet = ("socket.py", "network_guard.py", "selectors.py", "base_events.py", "selector_events.py")
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.endswith(quiet)]
    return f"{frames[-1].filename}:{frames[-1].lineno} ({frames[-1].name})" if frames else "somebody"


def proxy_of(scheme: str, host: str) -> str | None:
    """Return the environment's proxy for a host. None for a direct connection, as to this machine."""
    return None if host in LOOPBACK or proxy_bypass(host) else getproxies().get(scheme)
