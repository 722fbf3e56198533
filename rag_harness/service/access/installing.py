"""Puts everything that stands before an application's routes there, in the right order."""

from __future__ import annotations

from fastapi import FastAPI

from rag_harness.service.access.bodies import Bodies, Pace
from rag_harness.service.access.errors import answer_errors
from rag_harness.service.access.headers import Headers, Unforeseen


def install(app: FastAPI, pace: Pace | None = None) -> None:
    """Have an application answer errors, limit bodies and set headers.

    Before the first request, ``app.state.access`` must be an ``Access``, and every route a ``GuardedRoute``.
    """
    answer_errors(app)
    # The middleware that is added last is the outermost.
    app.add_middleware(Bodies, pace=pace)
    app.add_middleware(Unforeseen)
    app.add_middleware(Headers)
