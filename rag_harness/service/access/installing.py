"""Everything that stands before an application's routes, put there in its order."""

from __future__ import annotations

from fastapi import FastAPI

from rag_harness.service.access.bodies import Bodies, Pace
from rag_harness.service.access.errors import answer_errors
from rag_harness.service.access.headers import Headers, Unforeseen


def install(app: FastAPI, pace: Pace | None = None) -> None:
    """Have an application answer errors, limit bodies and set headers.

    Before its first request ``app.state.access`` must be an ``Access``, and its routes be ``GuardedRoute``.
    """
    answer_errors(app)
    # The last that is added is the outermost.
    app.add_middleware(Bodies, pace=pace)
    app.add_middleware(Unforeseen)
    app.add_middleware(Headers)
