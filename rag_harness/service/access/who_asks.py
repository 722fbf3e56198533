"""Finds out who asks and whether they may, before a byte of the request's body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Request, Response, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from rag_harness.service.access import service_keys
from rag_harness.service.access.binding import check_page, is_this_machine
from rag_harness.service.access.capacity import AnsweringPlaces
from rag_harness.service.access.principal import NOBODY_ELSE, Principal, Scope
from rag_harness.service.access.rates import Rates
from rag_harness.service.options import Options
from rag_harness.service.problems import ProblemError
from rag_harness.service.state.database import Database

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
        found = service_keys.find(self.db, presented) if presented else None
        if found is not None:
            return found
        # Checked at each request: once the first key is made, a key is needed. OpenAI's SDK always sends one.
        if is_this_machine(self.options.host) and not service_keys.any_made(self.db):
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
