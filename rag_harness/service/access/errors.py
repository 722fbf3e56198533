"""From errors to problem+json. No traceback and no path is sent, and texts of others are shortened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rag_harness.files.room import NO_ROOM
from rag_harness.service.problems import ProblemError, no_room, shortened
from rag_harness.service.state.problems import StateError

PROBLEM = "application/problem+json"
_MOST_ERRORS = 20
_KNOWN = {
    404: ("no_such_path", "There is nothing at this path. GET /openapi.json lists what there is."),
    405: ("no_such_method", "This path does not know this method. GET /openapi.json lists what it knows."),
    400: ("unreadable", "The request's body cannot be read as what its Content-Type says."),
}


EXPECTED = (ProblemError, RequestValidationError, HTTPException, StateError)
"""Errors that :func:`problem_of` knows. All others are unforeseen."""


def answer_errors(app: FastAPI) -> None:
    """Have an application answer errors in problem+json. Unforeseen errors are left to :class:`Unforeseen`."""
    for kind in EXPECTED:
        app.add_exception_handler(kind, _answered)


def response_of(problem: ProblemError) -> Response:
    """Return the response for a problem."""
    content = json.dumps(problem.body(), ensure_ascii=True)
    return Response(content, problem.status, problem.headers, PROBLEM)


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that a client is told for one of ``EXPECTED``."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _refused(error)
    return ProblemError(503, "state_unusable", str(error), {"Retry-After": "10"})


async def _answered(_: Request, error: Exception) -> Response:
    return response_of(problem_of(error))


def _invalid(error: RequestValidationError) -> ProblemError:
    errors = [_told(each) for each in error.errors()[:_MOST_ERRORS]]
    where = ", ".join(dict.fromkeys(each["field"] for each in errors)) or "it"
    # FastAPI parses a body only if Content-Type says JSON. Otherwise it passes on the bytes.
    said_so = " It was not said to be JSON: send Content-Type: application/json." if type(error.body) is bytes else ""
    detail = shortened(f"The request does not fit: see {where}. GET /openapi.json says what is expected.") + said_so
    return ProblemError(422, "invalid_request", detail, extra={"errors": errors})


def _told(error: Mapping[str, Any]) -> dict[str, str]:
    """Return the field and the reason, without the value that was sent. A field name that was sent is cut short."""
    return {"field": shortened(".".join(str(part) for part in error["loc"])), "why": shortened(str(error["msg"]))}


def _refused(error: HTTPException) -> ProblemError:
    """Return the problem for an error of the framework. If the cause is a problem of ours, return that one."""
    cause = error.__cause__
    if isinstance(cause, ProblemError):
        return cause
    if isinstance(cause, OSError) and cause.errno in NO_ROOM:
        return no_room()  # uploads are spooled to the folder for temporary files, which is full
    code, detail = _KNOWN.get(error.status_code, ("refused", shortened(str(error.detail))))
    return ProblemError(error.status_code, code, detail, dict(error.headers or {}))
