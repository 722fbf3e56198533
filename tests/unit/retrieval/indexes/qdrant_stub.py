"""A stub of Qdrant's REST API on 127.0.0.1: it refuses what does not validate against the client's request models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from qdrant_client.http import models

_SCHEMAS: dict[tuple[str, str], TypeAdapter[Any]] = {
    ("PUT", ""): TypeAdapter(models.CreateCollection),
    ("PUT", "/points"): TypeAdapter(models.PointInsertOperations),
    ("POST", "/points/count"): TypeAdapter(models.CountRequest),
    ("POST", "/points/query"): TypeAdapter(models.QueryRequest),
    ("POST", "/points/delete"): TypeAdapter(models.PointIdsList),
    ("POST", "/points/scroll"): TypeAdapter(models.ScrollRequest),
    ("POST", "/points"): TypeAdapter(models.PointRequest),
}


@dataclass
class QdrantStub:
    url: str
    api_key: str = ""
    failures: int = 0
    """How many uploads are answered 500 before one is taken."""
    calls: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    collections: dict[str, dict[Any, Any]] = field(default_factory=dict)
    exact: list[Any] = field(default_factory=list)

    def answer(self, method: str, path: str, key: str | None, content: bytes) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        _, _, name, *rest = path.split("/")
        what = (method, "".join(f"/{part}" for part in rest))
        self.calls.append(f"{method} {what[1] or '/'}")
        if self.api_key and key != self.api_key:
            return 401, "Must provide an API key or an Authorization bearer token"
        asked: Any = None
        if what in _SCHEMAS:
            try:
                asked = _SCHEMAS[what].validate_json(content, strict=True)
            except ValidationError as error:
                return 422, str(error)
        handler = self._handlers().get(what)
        if handler is None or (name not in self.collections and what not in (("PUT", ""), ("GET", "/exists"))):
            return 404, f"Not found: {what} of {name}"
        if ((method == "PUT" and rest) or rest[1:] == ["delete"]) and "wait=true" not in query:
            return 400, "The test wants points to be there when the call returns"
        return handler(name, asked)

    def _handlers(self) -> dict[tuple[str, str], Callable[[str, Any], tuple[int, Any]]]:
        return {
            ("GET", "/exists"): lambda name, _: (200, {"exists": name in self.collections}),
            ("GET", ""): lambda name, _: (200, self._info(name)),
            ("PUT", ""): self._create,
            ("DELETE", ""): lambda name, _: (200, bool(self.collections.pop(name))),
            ("PUT", "/points"): self._insert,
            ("POST", "/points/count"): lambda name, _: (200, {"count": len(self.collections[name])}),
            ("POST", "/points/query"): self._query,
            ("POST", "/points/delete"): self._delete,
            ("POST", "/points/scroll"): self._scroll,
            ("POST", "/points"): self._retrieve,
        }

    def _create(self, name: str, asked: models.CreateCollection) -> tuple[int, Any]:
        assert isinstance(asked.vectors, models.VectorParams)
        assert asked.vectors.distance == models.Distance.COSINE
        self.collections[name] = {}
        return 200, True

    def _insert(self, name: str, asked: models.PointsList) -> tuple[int, Any]:
        if self.failures:
            self.failures -= 1
            return 500, "Service internal error"
        self.batches.append(len(asked.points))
        self.collections[name] |= {str(point.id): point for point in asked.points}
        return 200, {"operation_id": 1, "status": "completed"}

    def _query(self, name: str, asked: models.QueryRequest) -> tuple[int, Any]:
        self.exact.append(asked.params and asked.params.exact)
        points = list(self.collections[name].values())
        nearest = asked.query.nearest if isinstance(asked.query, models.NearestQuery) else asked.query
        rows, query = np.array([point.vector for point in points]), np.array(nearest)
        scores = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
        best = np.argsort(-scores)[: asked.limit]
        found = [{"id": _plain(points[n].id), "version": 1, "score": float(scores[n])} for n in best]
        return 200, {"points": found}

    def _delete(self, name: str, asked: models.PointIdsList) -> tuple[int, Any]:
        for point in asked.points:
            self.collections[name].pop(str(point), None)
        return 200, {"operation_id": 1, "status": "completed"}

    def _scroll(self, name: str, asked: models.ScrollRequest) -> tuple[int, Any]:
        points = sorted((point.id for point in self.collections[name].values()), key=int)
        rest = [point for point in points if asked.offset is None or point >= asked.offset]
        shown = rest[: asked.limit]
        after = rest[len(shown)] if len(rest) > len(shown) else None
        return 200, {"points": [{"id": point} for point in shown], "next_page_offset": after}

    def _retrieve(self, name: str, asked: models.PointRequest) -> tuple[int, Any]:
        there = [self.collections[name].get(str(point)) for point in asked.ids]
        unit = [(point.id, np.array(point.vector) / np.linalg.norm(point.vector)) for point in there if point]
        return 200, [{"id": number, "vector": row.tolist()} for number, row in unit]

    def _info(self, name: str) -> dict[str, Any]:
        config = {
            "params": {"vectors": {"size": 24, "distance": "Cosine"}},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000,
                                 "default_segment_number": 0, "flush_interval_sec": 5},
        }  # fmt: skip
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": config,
            "payload_schema": {},
        }


def _plain(point: Any) -> int | str:
    return point if isinstance(point, int) else str(point)


@contextmanager
def qdrant_stub(api_key: str = "", failures: int = 0) -> Iterator[QdrantStub]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"] or 0))
            status, result = stub.answer(self.command, self.path, self.headers["api-key"], content)
            shown = {"result": result, "status": "ok"} if status == 200 else {"status": {"error": result}}
            body = json.dumps({**shown, "time": 0.0}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = _any  # noqa: N815 - the names that http.server asks for

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        stub = QdrantStub(f"http://127.0.0.1:{http.server_port}", api_key, failures)
        # The default poll interval makes every shutdown wait for half a second.
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            http.shutdown()
            thread.join()
