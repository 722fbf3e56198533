"""What went wrong -> problem+json: no traceback, no path, nobody's words at length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rag_harness.service.problems import ProblemError
from rag_harness.service.state.problems import StateError

PROBLEM = "application/problem+json"
_MOST_ERRORS = 20
_MOST_CHARACTERS = 200
_KNOWN = {
    404: ("no_such_path", "There is nothing at this path. GET /openapi.json lists what there is."),
    405: ("no_such_method", "This path does not know this method. GET /openapi.json lists what it knows."),
    400: ("unreadable", "The request's body cannot be read as what its Content-Type says."),
}


def answer_errors(app: FastAPI) -> None:
    """Have an application answer in problem+json. What nobody foresaw is left to :class:`Unforeseen`."""
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(StateError, _without_state)


def response_of(problem: ProblemError) -> Response:
    """Return what a client is told."""
    content = json.dumps(problem.body(), ensure_ascii=True)
    return Response(content, problem.status, problem.headers, PROBLEM)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return response_of(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [_told(each) for each in error.errors()[:_MOST_ERRORS]]
    where = ", ".join(dict.fromkeys(each["field"] for each in errors)) or "it"
    detail = _short(f"The request does not fit: see {where}. GET /openapi.json says what is expected.")
    return response_of(ProblemError(422, "invalid_request", detail, extra={"errors": errors}))


def _told(error: Mapping[str, Any]) -> dict[str, str]:
    """Return which field and why, without what was sent; a name that was sent is cut short."""
    return {"field": _short(".".join(str(part) for part in error["loc"])), "why": _short(str(error["msg"]))}


async def _refused(_: Request, error: Exception) -> Response:
    """Answer what the framework refuses. Where it stumbled over a problem of ours, that one is told."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, ProblemError):
        return response_of(error.__cause__)
    code, detail = _KNOWN.get(error.status_code, ("refused", _short(str(error.detail))))
    return response_of(ProblemError(error.status_code, code, detail, dict(error.headers or {})))


async def _without_state(_: Request, error: Exception) -> Response:
    return response_of(ProblemError(503, "state_unusable", str(error), {"Retry-After": "10"}))


def _short(text: str) -> str:
    # Half a character (a lone surrogate) that somebody sent as a name must not break the answer about it.
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
