"""GitHub's and GitLab's endpoints for comments and statuses, on a port of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.serving import running

TOKEN = "planted-token-77"
BOT, SOMEBODY = "github-actions[bot]", "somebody"
_COMMENTS = re.compile(r"/(?:repos/o/r/issues|projects/5/merge_requests)/7/(?:comments|notes)")
_ONE = re.compile(r"/(?:repos/o/r/issues/comments|projects/5/merge_requests/7/notes)/(\d+)")


@dataclass
class FakeHost:
    """What a host has: comments in their order, statuses, open pull requests; and what it was asked."""

    url: str = ""
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    refuses: str = ""
    """Method that is refused with 403."""
    before: Callable[[str], None] = lambda _: None
    """Called with the method before a request is answered."""
    lock: Any = field(default_factory=Lock)

    def add(self, body: str, login: str = BOT) -> int:
        number = 100 + len(self.asked) + len(self.comments)
        author = {"login": login, "id": len(login)}
        self.comments[number] = {"id": number, "body": body, "user": author, "author": author, "system": False}
        return number

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if method == self.refuses:
            return 403, {"message": "Resource not accessible by integration"}
        if one := _ONE.fullmatch(parts.path):
            return self._one(method, int(one[1]), body)
        if _COMMENTS.fullmatch(parts.path):
            return self._comments(method, query, body)
        if parts.path == "/repos/o/r/pulls":
            return 200, [each for each in self.pulls if each["head"]["label"] == query["head"]]
        if parts.path.startswith("/repos/o/r/statuses/") and method == "POST":
            self.statuses.append({"sha": parts.path.rpartition("/")[2], **body})
            return 201, {}
        return (200, {"id": len(BOT)}) if parts.path == "/user" else (404, {"message": f"nothing at {target}"})

    def _comments(self, method: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if method == "POST":
            return 201, self.comments[self.add(body["body"])]
        size, page = int(query["per_page"]), int(query["page"])
        return 200, [*self.comments.values()][size * (page - 1) : size * page]

    def _one(self, method: str, number: int, body: Any) -> tuple[int, Any]:
        if number not in self.comments:
            return 404, {"message": "Not Found"}
        if method == "DELETE":
            self.comments.pop(number)
            return 204, None
        assert method in ("PATCH", "PUT")
        self.comments[number]["body"] = body["body"]
        return 200, self.comments[number]


@contextmanager
def fake_host() -> Iterator[FakeHost]:
    host = FakeHost()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            assert TOKEN in (self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or "")
            host.before(self.command)
            with host.lock:
                status, said = host.answer(self.command, self.path, json.loads(content) if content else None)
                host.asked.append((self.command, self.path))
            sent = b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any  # noqa: N815 - names of http.server

        def log_message(self, *_: Any) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        yield host
