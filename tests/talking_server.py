"""A chat service on 127.0.0.1 that keeps conversations itself, in memory: it is sent each question alone.

POST /v1/chat             {"message": …, "session": …}    in a session that is named there, or in x-session, or new
POST /v1/threads          opens a session
POST /v1/threads/ID       {"message": …}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from time import sleep
from typing import Any, Literal
from urllib.parse import unquote
from uuid import uuid4

from tests.model_server import ModelServer
from tests.serving import running


class TalkingServer(ModelServer):
    """Answers with the number of the question in its session, and with what was asked there before.

    Attributes:
        heard: session and question, in the order in which they came.
        unknown: what it does with a session that it does not know: answers in a new one, takes the name for a new one,
            refuses with this status, or says so in an error with status 200.
        refuses: questions that it does not answer.
        mute: questions that it answers with nothing.
        state: what stands under ``session`` in its answers, of the session's id; ``...`` leaves it out.
        changes: whether each answer has another id.
        delay: seconds before an answer.
        delays: the same of single questions.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.memory: dict[Any, list[str]] = {}
        self.heard: list[tuple[Any, str]] = []
        self.opened: list[tuple[str, Any]] = []
        self.unknown: Literal["new", "take", "404", "400", "error"] = "new"
        self.refuses: set[str] = set()
        self.state: Callable[[Any], Any] = lambda session: session
        self.make: Callable[[], Any] = lambda: uuid4().hex
        self.mute: set[str] = set()
        self.changes = False
        self.delay = 0.0
        self.delays: dict[str, float] = {}

    @property
    def messages(self) -> list[str]:
        """The questions that came, in their order."""
        return [message for _, message in self.heard]

    def forget(self) -> None:
        """Start again: nothing is known, and nothing was heard."""
        with self.lock:
            self.memory.clear()
            self.heard.clear()

    def asked(self, session: Any, message: str) -> tuple[int, Any]:
        """Return status and answer."""
        with self.lock:
            if session not in self.memory and session is not None:
                if self.unknown in ("404", "400"):
                    return int(self.unknown), {"error": {"code": "no_such_session"}}
                if self.unknown == "error":
                    return 200, {"error": {"code": "no_such_session"}}
                session = session if self.unknown == "take" else None
            session = self.make() if session is None else session
            before = self.memory.pop(session, []) if self.changes else self.memory.setdefault(session, [])
            self.heard.append((session, message))
            if message in self.refuses:
                return 400, {"error": {"code": "bad_question"}}
            said = (
                "" if message in self.mute else f"{len(before) + 1}. {message} after {', '.join(before) or 'nothing'}"
            )
            before.append(message)
            if self.changes:
                session = self.make()
                self.memory[session] = before
        state = self.state(session)
        found = {} if state is ... else {"session": state}
        return 200, {"answer": said, "contexts": [], "is_new": len(before) == 1, **found}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: TalkingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        sleep(self.server.delays.get(body.get("message", ""), self.server.delay))
        parts = self.path.strip("/").split("/")[1:]
        if parts == ["threads"]:
            session = self.server.make()
            self.server.memory[session] = []
            self.server.opened.append((self.headers.get("authorization", ""), body))
            self._send(201, {"id": session})
        elif parts[0] == "threads":
            self._send(*self.server.asked(unquote(parts[1]), body["message"]))
        else:
            session = body.get("session", self.headers.get("x-session"))
            self._send(*self.server.asked(session, body["message"]))

    def _send(self, status: int, content: Any) -> None:
        said = json.dumps(content).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests quiet."""


@contextmanager
def talking_server() -> Iterator[TalkingServer]:
    """Serve until the block is left."""
    with running(TalkingServer()) as server:
        yield server
