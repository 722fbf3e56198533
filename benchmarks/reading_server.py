"""A stub of a Qdrant server for ingest: it reads the points that arrive and only counts them.

python benchmarks/reading_server.py     prints its port, and serves until it is killed
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

_POINTS = re.compile(rb'"position": ?\d')
"""One a point: its payload has it. Making values of all that JSON would cost what a server costs."""


class State:
    """What is there: collections with what was asked of each, points of the ledger, and how many of the others."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.collections: dict[str, Any] = {}
        self.ledger: dict[str, Any] = {}
        self.points: dict[str, int] = {}

    def made(self, name: str, content: bytes) -> bool:
        self.collections[name], self.points[name] = json.loads(content), 0
        return True

    def upserted(self, name: str, content: bytes) -> dict[str, Any]:
        if name == "rag_harness_runs":
            self.ledger |= {each["id"]: each["payload"] for each in json.loads(content)["points"]}
        else:
            found = len(_POINTS.findall(content))
            with self.lock:
                self.points[name] += found
        return {"operation_id": 1, "status": "completed"}

    def retrieved(self, _name: str, content: bytes) -> list[Any]:
        return [
            {"id": each, "payload": self.ledger[each]} for each in json.loads(content)["ids"] if each in self.ledger
        ]

    def info(self, name: str) -> dict[str, Any]:
        asked = self.collections[name]
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": self.points[name],
            "config": {
                "params": {"vectors": {"size": asked["vectors"]["size"], "distance": "Cosine"}},
                "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
                "metadata": asked["metadata"],
            },
            "payload_schema": {},
        }

    def answer(self, method: str, path: str, content: bytes) -> Any:
        """Return the result of a request."""
        _, root, name, *rest = [*path.partition("?")[0].split("/"), ""][:3] + path.partition("?")[0].split("/")[3:]
        what = f"{method} {'/'.join(rest)}"
        if root != "collections":
            return {"title": "qdrant - vector search engine", "version": "1.17.1"}
        known: dict[str, Callable[[], Any]] = {
            "GET exists": lambda: {"exists": name in self.collections},
            "GET ": lambda: self.info(name),
            "PUT ": lambda: self.made(name, content),
            "PUT index": lambda: {"operation_id": 1, "status": "completed"},
            "PUT points": lambda: self.upserted(name, content),
            "POST points": lambda: self.retrieved(name, content),
            "POST points/count": lambda: {"count": self.points[name]},
            "POST points/query": lambda: {"points": [{"id": 1, "version": 1, "score": 1.0}]},
            "GET told": lambda: self.points,
        }
        return known[what]()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = State()

    def _any(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"] or 0))
        result = self.state.answer(self.command, self.path, content)
        shown = {"result": result, "status": "ok", "time": 0.0} if self.path != "/" else result
        body = json.dumps(shown).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = _any  # noqa: N815 - the names that http.server asks for

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def reading_server() -> Iterator[str]:
    """Give the URL of one, in a process of its own."""
    with subprocess.Popen([sys.executable, str(Path(__file__))], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
