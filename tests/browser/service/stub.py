"""A service that says what a test tells it to, in the words that go over the wire; its page is the real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response


TEXT = "# Returns\n\nLamps can be returned within 45 days.  \nThe label is in the box.\n\nBulbs cannot."
ANSWER = "You can return lamps within 45 days [Source 1]. Bulbs stay 💡 with you [Source 2]."
FIRST = f"{1:032x}"
"""The first conversation that is begun."""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SOURCES: list[dict[str, Any]] = [
    {"source": 1, "document": "lamps.md", "section": "Returns", "score": 0.9, "text": TEXT},
    {"source": 2, "document": "bulbs.pdf", "section": "Limits", "score": 0.5, "text": "Opened bulbs stay with you."},
    {"source": 3, "document": "other.txt", "section": "", "score": 0.1, "text": "Something else."},
]
Event = tuple[str, Any] | float
"""Name and data, or seconds to wait; ``raw`` is sent as it stands."""


def citation(answer: str, claim: str, source: int, quote: str, **more: Any) -> dict[str, Any]:
    """Return that a part of the answer rests on a quote."""
    start = answer.index(claim)
    at = {"answer_start": start, "answer_end": start + len(claim), "start": 0, "end": len(quote)}
    of = {"section": "Returns", "page": None, "url": "https://example.com/lamps", "document": "lamps.md"}
    return {**at, **of, "source": source, "quote": quote, **more}


def citations() -> list[dict[str, Any]]:
    """Return those of the usual answer; one quote is written with other blanks than its passage."""
    return [
        citation(
            ANSWER, "You can return lamps within 45 days", 1, "Lamps can be returned within 45 days. The label is"
        ),
        citation(ANSWER, "Bulbs stay 💡 with you", 2, "Opened bulbs stay with you.", document="bulbs.pdf", page=3),
    ]


def answered(**more: Any) -> dict[str, Any]:
    """Return an answer whole."""
    usual = {"answer": ANSWER, "citations": citations(), "confidence": 0.83, "decision": "pass", "reasons": []}
    return {**usual, "trace_id": TRACE, "experiment": "r1", "debug": None, **more}


def events(done: Mapping[str, Any] | None = None, tokens: Sequence[str] | None = None, pause: float = 0) -> list[Event]:
    """Return how an answer comes; by default in pieces of five letters, which cut through its marks."""
    whole = dict(done or answered())
    text = whole["answer"]
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)] if tokens is None else tokens
    verdict = {name: whole[name] for name in ("decision", "confidence", "reasons")}
    told = whole.pop("citations")
    return [
        ("retrieval", {"sources": SOURCES}),
        *[each for piece in pieces for each in paused(pause, piece)],
        *(("citation", one) for one in told),
        ("verdict", verdict),
        ("done", whole),
    ]


def paused(pause: float, piece: str) -> list[Event]:
    """Return a piece of an answer, and the time before it."""
    words: Event = ("token", {"text": piece})
    return [pause, words] if pause else [words]


def document(name: str, **more: Any) -> dict[str, Any]:
    """Return what is known of a document."""
    usual = {"status": "ready", "why": "", "chunks_created": 12, "dropped": {}, "coverage": 0.98, "bytes": 4_000}
    return {"doc_id": f"id-of-{name}", "name": name, "created": "2026-11-22T10:00:00Z", **usual, **more}


@dataclass(frozen=True)
class Refusal:
    """A problem instead of an answer."""

    status: int
    detail: str = "what was asked, what was found, what to do"
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = "no"


@dataclass
class Stub:
    """What it says, and what it was asked.

    ``says`` is an answer whole, or events; ``refuses`` is by method and path, of one id as ``{id}``, and
    ``refuses_once`` the next time; ``left`` counts streams that nobody waited for any more; ``polls`` times a
    document is asked about before it can be found; ``cut`` hangs up after the last event; ``bytes_at_once`` cuts
    events into pieces; ``loading`` is how far the start is, one text each time somebody asks; ``again`` are answers
    that were given before, by their traces; ``begun`` conversations were begun, and those in ``ended`` are ended.
    """

    says: Any = field(default_factory=events)
    documents: list[dict[str, Any]] = field(default_factory=lambda: [document("lamps.md"), document("bulbs.pdf")])
    key: str = ""
    experiment: str = "r1"
    loading: list[str] = field(default_factory=list)
    polls: int = 2
    refuses: dict[str, Refusal] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    left: int = 0
    cut: bool = False
    bytes_at_once: int = 0
    again: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuses_once: dict[str, Refusal] = field(default_factory=dict)
    begun: int = 0
    ended: list[str] = field(default_factory=list)

    def reset(self) -> None:
        """Say the usual again."""
        self.__init__()  # type: ignore[misc]

    def asked(self, path: str) -> list[dict[str, Any]]:
        """Return the requests to a path."""
        return [one for one in self.requests if one["path"] == path]

    def app(self) -> FastAPI:
        """Return the application."""
        from fastapi import FastAPI

        from rag_harness.service import routes as page

        app = FastAPI()
        app.include_router(page.page_router)
        for method, path, answer in (
            ("POST", "/query", self._query),
            ("POST", "/conversations", self._begin),
            ("DELETE", "/conversations/{id}", self._end),
            ("GET", "/ready", self._ready),
            ("GET", "/documents", self._documents),
            ("DELETE", "/documents/{id}", self._delete),
            ("POST", "/ingest", self._ingest),
            ("GET", "/ingest/{id}", self._ingested),
            ("POST", "/traces/{id}/rating", self._rate),
            ("GET", "/traces/{id}/answer", self._again),
        ):
            app.router.add_route(path, self._watched(f"{method} {path}", answer), methods=[method])
        return app

    def _watched(self, route: str, answer: Any) -> Any:

        async def answers(request: Request) -> Response:
            body = await request.body()
            self.requests.append({"path": request.url.path, "headers": dict(request.headers), "body": body})
            if self.key and route != "GET /ready" and request.headers.get("authorization") != f"Bearer {self.key}":
                return problem(Refusal(401, "unknown key"))
            if route in self.refuses_once:
                return problem(self.refuses_once.pop(route))
            if route in self.refuses:
                return problem(self.refuses[route])
            response: Response = await answer(request)
            return response

        return answers

    async def _begin(self, request: Request) -> Response:
        self.begun += 1
        return as_json({"conversation": f"{self.begun:032x}"}, 201)

    async def _end(self, request: Request) -> Response:
        from fastapi import Response

        self.ended.append(request.path_params["id"])
        return Response(status_code=204)

    async def _query(self, request: Request) -> Response:
        from fastapi.responses import JSONResponse, StreamingResponse

        if isinstance(self.says, dict):
            return JSONResponse(self.says)
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            yield b": what begins with a colon is for nobody\r\n\r\n"
            for one in self.says:
                if isinstance(one, float):
                    await asyncio.sleep(one)
                else:
                    whole = one[1].encode() if one[0] == "raw" else wire(*one)
                    size = self.bytes_at_once or len(whole)
                    for at in range(0, len(whole), size):
                        yield whole[at : at + size]
                        await asyncio.sleep(0)
            if self.cut:
                await asyncio.sleep(0.3)
                raise ConnectionError("the stub hangs up")
        except (asyncio.CancelledError, GeneratorExit):
            self.left += 1
            raise

    async def _ready(self, request: Request) -> Response:
        if self.loading:
            return as_json({"status": "starting", "experiment": self.experiment, "progress": self.loading.pop(0)}, 503)
        return as_json({"status": "ready", "experiment": self.experiment, "progress": ""})

    async def _again(self, request: Request) -> Response:
        known = self.again.get(request.path_params["id"])
        return as_json(known) if known else problem(Refusal(404, "There is no such answer."))

    async def _documents(self, request: Request) -> Response:
        return as_json({"collection": "default", "documents": self.documents})

    async def _delete(self, request: Request) -> Response:
        from fastapi import Response

        self.documents = [one for one in self.documents if one["doc_id"] != request.path_params["id"]]
        return Response(status_code=204)

    async def _ingest(self, request: Request) -> Response:
        async with request.form() as form:
            name = form["file"].filename  # type: ignore[union-attr]
        new = document(str(name), status="pending", chunks_created=0, coverage=None)
        self.documents = [*(one for one in self.documents if one["name"] != new["name"]), new]
        return as_json(new, 202)

    async def _ingested(self, request: Request) -> Response:
        (one,) = (one for one in self.documents if one["doc_id"] == request.path_params["id"])
        self.polls -= 1
        if self.polls <= 0 and one["status"] == "pending":
            one.update(document(one["name"], dropped={"hidden_characters": 1_234}))
        return as_json(one)

    async def _rate(self, request: Request) -> Response:
        return as_json({"kept": True})


def wire(name: str, data: Any) -> bytes:
    """Return an event as it is sent."""
    return f"event: {name}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


def as_json(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    from fastapi.responses import JSONResponse

    return JSONResponse(content, status)


def problem(refusal: Refusal) -> Response:
    """Return an answer as RFC 9457 has it."""
    from fastapi.responses import JSONResponse

    body = {
        "type": "about:blank",
        "title": "no",
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
    }
    return JSONResponse(body, refusal.status, dict(refusal.headers), media_type="application/problem+json")
