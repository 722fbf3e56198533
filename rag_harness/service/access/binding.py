"""Without any key a server is for this machine alone: where it listens, and who may ask it there.

A page in a browser on this machine is not this machine's user: it can reach 127.0.0.1 under a name of its own (DNS
rebinding), and send forms there from any site. So what names the server, and where a page came from, are looked at.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from rag_harness.errors import SettingsError
from rag_harness.service.problems import ProblemError

_BACKLOG = 2048
"""Connections that may wait to be taken; as many as uvicorn has."""


def is_this_machine(host: str) -> bool:
    """Return whether a host, as in ``--host`` or a URL without its port, reaches this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, keys_made: bool) -> None:
    """Check that a server may listen on ``host``.

    Raises:
        SettingsError: others could reach it, and no key was made.
    """
    if keys_made or is_this_machine(host):
        return
    raise SettingsError(
        f"The server was to listen on {host or 'every address'}, and there is no key: whoever reaches it could read "
        f"and change its documents. Make a key first (rag-harness keys create --scope query), or listen on this "
        f"machine alone: --host 127.0.0.1."
    )


def listening_on(host: str, port: int) -> list[socket.socket]:
    """Return what listens on each address that ``host`` has, all on one port; 0 is any that is free.

    Raises:
        SettingsError: the port is taken or none, or the address is not this machine's.
    """
    if not 0 <= port < 1 << 16:
        raise SettingsError(f"--port {port} is none: name one from 1 to 65535, or 0 for any that is free.")
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys(_addresses(host, port)):
            chosen = sockets[0].getsockname()[1] if sockets else port
            made = socket.create_server((address, chosen), family=family, backlog=_BACKLOG)
            # What is accepted inherits it. asyncio sets it only where a socket was made with its protocol; without it
            # each answer's body waits 40 ms for the client to confirm its headers.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(made)
    except OSError as error:
        for each in sockets:
            each.close()
        raise SettingsError(_not_there(host, port, error)) from error
    return sockets


def url_of(host: str, port: int) -> str:
    """Return the address of the page, for somebody at this machine."""
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    usable = [each for each in found if each[0] != socket.AF_INET6 or socket.has_dualstack_ipv6()]
    return [(each[0], str(each[4][0])) for each in usable or found]


def _not_there(host: str, port: int, error: OSError) -> str:
    where = f"The server was to listen on port {port} of {host or 'every address'}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}, and another program does. Stop that one, or name another: --port 0 is any that is free."
    return f"{where}, and cannot ({error.strerror or error}). Name another: --host 127.0.0.1, --port 8000."


def check_page(headers: Mapping[str, str]) -> None:
    """Check that a request without a key comes from this machine, and from no page of another site.

    Raises:
        ProblemError: 403 where its Host or Origin is another's.
    """
    host = headers.get("host", "")
    if not is_this_machine(_without_port(host)):
        raise _elsewhere("Host")
    # Browsers name where a page came from with every request that could change something.
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise _elsewhere("Origin")


def _without_port(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _elsewhere(header: str) -> ProblemError:
    return ProblemError(
        403,
        "not_this_machine",
        f"This server has no keys and answers this machine alone, and the header {header} names another. Ask it by "
        f"127.0.0.1 or localhost, or have its owner make a key.",
    )
