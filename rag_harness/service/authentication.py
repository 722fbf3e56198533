"""Authentication of requests: by a key, or without keys by the user of this machine."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any

from fastapi import Request, Response, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from starlette.datastructures import Headers

from rag_harness.core.errors import SettingsError
from rag_harness.service import keys
from rag_harness.service.app_state import Options
from rag_harness.service.database import Database
from rag_harness.service.keys import NOBODY_ELSE, Principal, Scope
from rag_harness.service.middleware import AnsweringPlaces
from rag_harness.service.problems import ProblemError
from rag_harness.service.rate_limits import Rates

# A page in a browser on this machine is not this machine's user. The page can reach 127.0.0.1 under its own name (DNS
# rebinding), and can send forms there from any site. So the headers Host, Origin and Sec-Fetch-Site are checked.

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
        f"The server was to listen on {host or 'every address'}, and there is no key: anybody who reaches it could "
        f"read and change its documents. Make a key first (rag-harness keys create --scope query), or listen on this "
        f"machine alone: --host 127.0.0.1."
    )


def listening_on(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of ``host``, all on one port. Port 0 takes any free port.

    Raises:
        SettingsError: the port is taken or not valid, or the address is not this machine's.
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
    # An address of version 6 is in brackets, and nothing else is.
    return is_this_machine(found["name"]) if found["name"] else is_this_machine(found["six"]) and ":" in found["six"]


def _elsewhere(header: str) -> ProblemError:
    return ProblemError(
        403,
        "not_this_machine",
        f"This server has no keys and answers this machine alone, and the header {header} names another. Ask it by "
        f"127.0.0.1 or localhost, or have its owner make a key.",
    )


# These two are for the OpenAPI page. The keys themselves are read below.
_bearer = HTTPBearer(auto_error=False, description="a key made by `rag-harness keys create`", scheme_name="key")
_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="the same key", scheme_name="key in X-API-Key")
_Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
_Header = Annotated[str | None, Security(_header)]


@dataclass(frozen=True)
class Access:
    """Decides which requests of one server are allowed; kept in ``app.state.access``."""

    db: Database
    options: Options
    rates: Rates
    places: AnsweringPlaces

    @classmethod
    def of(cls, db: Database, options: Options) -> Access:
        """Return the access of a server that is about to listen."""
        return cls(db, options, Rates(options.rate), AnsweringPlaces(options.concurrency))

    def principal(self, request: Request) -> Principal:
        """Return who asks.

        Raises:
            ProblemError: 401 if that is not known.
        """
        presented = _presented(request)
        found = keys.find_key(self.db, presented) if presented else None
        if found is not None:
            return found
        # Checked at each request: once the first key is made, a key is needed. OpenAI's SDK always sends one.
        if is_this_machine(self.options.host) and not keys.has_keys(self.db):
            check_page(request.headers)
            return NOBODY_ELSE
        raise _unknown(presented)


def access_of(request: Request) -> Access:
    """Return the access of the server that got this request."""
    access: Access = request.app.state.access
    return access


class Asks:
    """A dependency: only principals with ``scope`` may use the route. The route must be a ``GuardedRoute``."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request, _bearer: _Bearer = None, _header: _Header = None) -> Principal:
        """Return the principal that :meth:`admit` found."""
        admitted: Principal | None = getattr(request.state, "principal", None)
        return self.admit(request) if admitted is None else admitted

    def admit(self, request: Request) -> Principal:
        """Return who asks, and count the request.

        Raises:
            ProblemError: 401 without a good key, 403 without the scope, 429 above the rate.
        """
        access = access_of(request)
        principal = access.principal(request)
        if not principal.may(self.scope):
            raise _not_allowed(self.scope)
        standing = access.rates.count(principal)
        request.state.told = standing.headers() if standing else {}
        request.state.principal = principal
        return principal


def asks(scope: Scope) -> Asks:
    """Return the dependency of a route for principals with ``scope``: ``Depends(asks("query"))``."""
    return Asks(scope)


class GuardedRoute(APIRoute):
    """A route that checks who asks before it reads the body: FastAPI alone would read a stranger's upload first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handler, guards = super().get_route_handler(), _guards(self.dependant)

        async def guarded(request: Request) -> Response:
            for guard in guards:
                guard.admit(request)
            return await handler(request)

        return guarded


def _guards(dependant: Dependant) -> list[Asks]:
    own = [dependant.call] if isinstance(dependant.call, Asks) else []
    return own + [guard for each in dependant.dependencies for guard in _guards(each)]


def _presented(request: Request) -> str:
    """Return the key that came with a request; empty if there is none."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return request.headers.get("x-api-key", "").strip()


def _unknown(presented: str) -> ProblemError:
    what = "This key is not known here, or was revoked." if presented else "No key came with the request."
    detail = f"{what} Send a good one as Authorization: Bearer KEY, or as X-API-Key."
    return ProblemError(401, "key_unknown" if presented else "key_missing", detail, {"WWW-Authenticate": "Bearer"})


def _not_allowed(scope: Scope) -> ProblemError:
    detail = f"This key has not the scope {scope}. Ask the service's owner for one that has it."
    return ProblemError(403, "scope_missing", detail, extra={"scope": scope})
