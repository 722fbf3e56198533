"""What every route reads off a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from rag_harness.service.serviced import Service

InCollection = Annotated[
    str | None, Query(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", description="of a key that is bound to none: which one")
]


def service_of(request: Request) -> Service:
    """Return the server that a request came to."""
    service: Service = request.app.state.service
    return service


def trace_of(request: Request) -> str:
    """Return the id under which the answer to a request is traced."""
    return str(request.state.trace_id)
