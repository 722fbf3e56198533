"""Protects a server without keys: it may listen on this machine only, and only this machine's user may ask.

A page in a browser on this machine is not this machine's user. The page can reach 127.0.0.1 under its own name (DNS
rebinding), and can send forms there from any site. So the headers Host, Origin and Sec-Fetch-Site are checked.
"""

from __future__ import annotations

import errno
import re
import socket
from ipaddress import ip_address

from starlette.datastructures import Headers

from rag_harness.errors import SettingsError
from rag_harness.service.problems import ProblemError

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9.-]{1,253}))(?::(?P<port>[0-9]{1,5}))?")
_OWN_PAGES = ("same-origin", "none")
"""Values of Sec-Fetch-Site: our own page, and what a user opens. Where it lacks, no browser asks, or an old one."""
_BACKLOG = 2048
"""How many connections may wait to be accepted; uvicorn's own default."""


def is_this_machine(host: str) -> bool:
    """Return whether a host, as in ``--host`` or a URL without its port, is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, keys_made: bool) -> None:
    """Check that a server may listen on ``host``.

    Raises:
        SettingsError: other machines could reach it, and no key was made.
    """
    if keys_made or is_this_machine(host):
        return
    raise SettingsError(
        f"The server was to listen on {host or 'every address'}, and there is no key: whoever reaches it could read "
        f"and change its documents. Make a key first (rag-harness keys create --scope query), or listen on this "
        f"machine alone: --host 127.0.0.1."
    )


def listening_on(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of ``host``, all on one port. Port 0 takes any free port.

    Raises:
        SettingsError: the port is taken or is no valid port, or the address is not this machine's.
    """
    if not 0 <= port < 1 << 16:
        raise SettingsError(f"--port {port} is none: name one from 1 to 65535, or 0 for any that is free.")
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys(_addresses(host, port)):
            chosen = sockets[0].getsockname()[1] if sockets else port
            made = socket.create_server((address, chosen), family=family, backlog=_BACKLOG)
            # Accepted connections inherit this option. asyncio sets it only on sockets that were made with a protocol.
            # Without it, the body of each answer waits 40 ms until the client confirms the headers.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(made)
    except OSError as error:
        for each in sockets:
            each.close()
        raise SettingsError(_not_there(host, port, error)) from error
    return sockets


def url_of(host: str, port: int) -> str:
    """Return the page's address for a user of this machine."""
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


def check_page(headers: Headers) -> None:
    """Check that a request without a key comes from this machine, and not from another site's page.

    Raises:
        ProblemError: 403 if its Host, Origin or Sec-Fetch-Site belongs to another site.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _names_this_machine(hosts[0]):
        raise _elsewhere("Host")
    # Browsers send an Origin with every request that could change something.
    if any(each.partition("://")[2].lower() != hosts[0].lower() for each in headers.getlist("origin")):
        raise _elsewhere("Origin")
    # They send no Origin with images, scripts and forms that only read, and say there whose page it is.
    if any(each.strip().lower() not in _OWN_PAGES for each in headers.getlist("sec-fetch-site")):
        raise _elsewhere("Sec-Fetch-Site")


def _names_this_machine(host: str) -> bool:
    """Whether the header Host is a name or an address of this machine, with or without a port, and nothing else.

    It is matched whole. Parsers of URLs take ``[::1].evil`` for ``::1``, and ``user@localhost`` for ``localhost``.
    """
    found = _HOST.fullmatch(host)
    if found is None or int(found["port"] or 0) >= 1 << 16:
        return False
    # An address of version 6 stands in brackets, and nothing else does.
    return is_this_machine(found["name"]) if found["name"] else is_this_machine(found["six"]) and ":" in found["six"]


def _elsewhere(header: str) -> ProblemError:
    return ProblemError(
        403,
        "not_this_machine",
        f"This server has no keys and answers this machine alone, and the header {header} names another. Ask it by "
        f"127.0.0.1 or localhost, or have its owner make a key.",
    )
