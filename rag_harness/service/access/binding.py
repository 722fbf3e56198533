"""Without any key a server is for this machine alone: where it listens, and who may ask it there.

A page in a browser on this machine is not this machine's user: it can reach 127.0.0.1 under a name of its own (DNS
rebinding), and send forms there from any site. So what names the server, and where a page came from, are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from rag_harness.errors import SettingsError
from rag_harness.service.problems import ProblemError


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
