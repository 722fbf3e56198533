"""``GET /``: the page for people, and its two files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from rag_harness.shown.every_page import scripted, styled

router: APIRouter = APIRouter(include_in_schema=False)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing may come from elsewhere or stand inline. No text can become markup, and the page cannot be put in a frame."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    kind: str
    tag: str


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """Return the page."""
    return _answered(request, _file("index.html", "text/html", str))


@router.api_route("/page.css", methods=["GET", "HEAD"])
async def style(request: Request) -> Response:
    """Return its style."""
    return _answered(request, _file("page.css", "text/css", styled))


@router.api_route("/page.js", methods=["GET", "HEAD"])
async def script(request: Request) -> Response:
    """Return its script."""
    return _answered(request, _file("page.js", "text/javascript", scripted))


@cache
def _file(name: str, kind: str, whole: Callable[[str], str]) -> _File:
    content = whole(files("rag_harness.service").joinpath("page", name).read_text(encoding="utf-8")).encode()
    return _File(content, f"{kind}; charset=utf-8", f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _answered(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "ETag": file.tag}
    known = request.headers.get("If-None-Match", "").replace("W/", "")
    if file.tag in (one.strip() for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)
