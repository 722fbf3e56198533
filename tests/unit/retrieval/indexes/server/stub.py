"""A Qdrant cluster as its REST API shows it: requests must validate, and the client's memory mode does what they ask.

What memory mode does not know is told: nodes, shards and their states, versions, failures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import RLock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from qdrant_client.embed.schema_parser import ModelSchemaParser
from qdrant_client.http import models
from qdrant_client.local.qdrant_local import QdrantLocal

from rag_harness.retrieval.indexes.server_connection import quiet

_SCHEMAS: dict[tuple[str, str], TypeAdapter[Any]] = {
    ("PUT", ""): TypeAdapter(models.CreateCollection),
    ("PATCH", ""): TypeAdapter(models.UpdateCollection),
    ("PUT", "/index"): TypeAdapter(models.CreateFieldIndex),
    ("PUT", "/points"): TypeAdapter(models.PointInsertOperations),
    ("POST", "/points"): TypeAdapter(models.PointRequest),
    ("POST", "/points/count"): TypeAdapter(models.CountRequest),
    ("POST", "/points/query/batch"): TypeAdapter(models.QueryRequestBatch),
    ("POST", "/points/query"): TypeAdapter(models.QueryRequest),
    ("POST", "/points/delete"): TypeAdapter(models.PointsSelector),
    ("POST", "/points/scroll"): TypeAdapter(models.ScrollRequest),
    ("POST", ""): TypeAdapter(models.ChangeAliasesOperation),
}
_PARSED = ModelSchemaParser()
Answer = tuple[int, Any]


@dataclass(frozen=True)
class Call:
    """One request: ``what`` is its method and its path behind the collection's name."""

    what: str
    collection: str
    query: dict[str, str]
    asked: Any


@dataclass
class ClusterStub:
    url: str = ""
    version: str = "1.17.1"
    nodes: int = 3
    read_key: str = ""
    write_key: str = ""
    status: str = "green"
    shards: dict[int, list[str]] = field(default_factory=lambda: {0: ["Active"]})
    """The states of each shard's copies, on node 1, 2 and so on."""
    fault: Callable[[Call], Answer | None] = lambda _call: None
    """Asked before each call: an answer in place of the true one; status 0 lets the connection go without one."""
    calls: list[Call] = field(default_factory=list)
    engine: Any = field(default_factory=lambda: QdrantLocal(":memory:"))
    lock: RLock = field(default_factory=RLock)

    def whats(self, collection: str = "") -> list[str]:
        """What was asked, of one collection or of all."""
        return [call.what for call in self.calls if collection in ("", call.collection)]

    def batches(self, collection: str) -> list[int]:
        """Sizes of the uploads to a collection."""
        sent = [call.asked for call in self.calls if (call.what, call.collection) == ("PUT /points", collection)]
        return [len(each.batch.ids) if isinstance(each, models.PointsBatch) else len(each.points) for each in sent]

    def answer(self, method: str, target: str, key: str, content: bytes) -> Answer:
        parts = urlsplit(target)
        _, root, collection, *rest = [*parts.path.split("/"), ""][:3] + parts.path.split("/")[3:]
        behind = "".join(f"/{part}" for part in rest)
        schema = _SCHEMAS.get((method, behind)) if root == "collections" else None
        try:
            asked = schema.validate_json(content, strict=True) if schema else None
        except ValidationError as error:
            return 422, str(error)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        what = f"{method} {behind or '/'}" if root == "collections" else f"{method} /{root}"
        call = Call(what, collection, query, asked)
        with self.lock:
            self.calls.append(call)
            return self.fault(call) or self._refused(call, key) or self._do(call)

    def _refused(self, call: Call, key: str) -> Answer | None:
        known = {self.read_key, self.write_key} - {""}
        if known and key not in known:
            return 401, "Must provide an API key or an Authorization bearer token"
        changes = call.what.split()[0] in ("PUT", "PATCH", "DELETE") or call.what.endswith("/delete")
        return (403, "Write access is required") if known and changes and key != self.write_key else None

    def _do(self, call: Call) -> Answer:
        handler = getattr(self, _HANDLERS.get(call.what, ""), None)
        if handler is None:
            return 404, f"Not found: {call.what}"
        makes = call.what in ("PUT /", "GET /exists", "GET /", "GET /cluster", "POST /", "GET /aliases")
        if call.collection and not makes and not self.engine.collection_exists(call.collection):
            return 404, f"Not found: Collection `{call.collection}` doesn't exist!"
        with quiet():
            result: Answer = handler(call)
        return result

    def root(self, _call: Call) -> Answer:
        return 200, {"title": "qdrant - vector search engine", "version": self.version}

    def cluster(self, call: Call) -> Answer:
        if call.collection:
            return 200, self._shards(call.collection)
        peers = {str(node): {"uri": f"http://node-{node}:6335/"} for node in range(1, self.nodes + 1)}
        raft = {"term": 1, "commit": 1, "pending_operations": 0, "is_voter": True, "leader": 1, "role": "Leader"}
        about = {"status": "enabled", "peer_id": 1, "peers": peers, "raft_info": raft}
        enabled = {**about, "consensus_thread_status": {"consensus_thread_status": "stopped"},
                   "message_send_failures": {}}  # fmt: skip
        return 200, enabled if self.nodes > 1 else {"status": "disabled"}

    def _shards(self, collection: str) -> dict[str, Any]:
        count = self.engine.count(collection).count
        first = {"shard_id": 0, "points_count": count, "state": self.shards[0][0]}
        others = [
            {"shard_id": shard, "peer_id": node, "state": state}
            for shard, copies in self.shards.items()
            for node, state in enumerate(copies, 1)
            if (shard, node) != (0, 1)
        ]
        return {"peer_id": 1, "shard_count": len(self.shards), "local_shards": [first], "remote_shards": others,
                "shard_transfers": []}  # fmt: skip

    def listed(self, call: Call) -> Answer:
        if call.collection:
            if not self.engine.collection_exists(call.collection):
                return 404, f"Not found: Collection `{call.collection}` doesn't exist!"
            return 200, {**_plain(self.engine.get_collection(call.collection)), "status": self.status}
        return 200, _plain(self.engine.get_collections())

    def exists(self, call: Call) -> Answer:
        return 200, {"exists": self.engine.collection_exists(call.collection)}

    def create(self, call: Call) -> Answer:
        if self.engine.collection_exists(call.collection):
            return 409, f"Wrong input: Collection `{call.collection}` already exists!"
        asked = call.asked
        self.engine.create_collection(call.collection, vectors_config=asked.vectors or {}, metadata=asked.metadata)
        return 200, True

    def update(self, call: Call) -> Answer:
        return 200, self.engine.update_collection(call.collection, metadata=call.asked.metadata)

    def aliases(self, call: Call) -> Answer:
        found = self.engine.get_collection_aliases(call.collection) if call.collection else self.engine.get_aliases()
        return 200, _plain(found)

    def switch(self, call: Call) -> Answer:
        return 200, self.engine.update_collection_aliases(call.asked.actions)

    def remove(self, call: Call) -> Answer:
        return 200, self.engine.delete_collection(call.collection)

    def index(self, _call: Call) -> Answer:
        return 200, {"operation_id": 1, "status": "completed"}

    def upsert(self, call: Call) -> Answer:
        asked = call.asked
        points = asked.batch if isinstance(asked, models.PointsBatch) else asked.points
        self.engine.upsert(call.collection, points, update_filter=asked.update_filter)
        return 200, {"operation_id": 1, "status": "completed"}

    def retrieve(self, call: Call) -> Answer:
        asked = call.asked
        found = self.engine.retrieve(call.collection, asked.ids, asked.with_payload, asked.with_vector or False)
        return 200, [_plain(each) for each in found]

    def count(self, call: Call) -> Answer:
        return 200, _plain(self.engine.count(call.collection, exact=True))

    def query(self, call: Call) -> Answer:
        return 200, self._found(call.collection, call.asked)

    def query_batch(self, call: Call) -> Answer:
        return 200, [self._found(call.collection, each) for each in call.asked.searches]

    def _found(self, collection: str, asked: models.QueryRequest) -> Any:
        nearest = asked.query.nearest if isinstance(asked.query, models.NearestQuery) else asked.query
        return _plain(
            self.engine.query_points(
                collection, nearest, None, None, asked.filter, limit=asked.limit, with_payload=False
            )
        )

    def scroll(self, call: Call) -> Answer:
        points, after = self.engine.scroll(call.collection, limit=call.asked.limit, offset=call.asked.offset)
        return 200, {"points": [_plain(each) for each in points], "next_page_offset": after}

    def delete(self, call: Call) -> Answer:
        self.engine.delete(call.collection, call.asked)
        return 200, {"operation_id": 1, "status": "completed"}


_HANDLERS = {
    "GET /": "listed", "GET /exists": "exists", "PUT /": "create", "PATCH /": "update", "DELETE /": "remove",
    "PUT /index": "index", "PUT /points": "upsert", "POST /points": "retrieve", "POST /points/count": "count",
    "POST /points/query": "query", "POST /points/query/batch": "query_batch", "POST /points/scroll": "scroll",
    "POST /points/delete": "delete", "GET /cluster": "cluster", "GET /aliases": "aliases", "POST /": "switch",
}  # fmt: skip


def _plain(model: BaseModel) -> Any:
    return json.loads(model.model_dump_json(by_alias=True, exclude_none=True))


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let clients share what each would make anew of the schemas of all models: 20 ms."""
    shared = vars(_PARSED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ModelSchemaParser, "__init__", lambda self: setattr(self, "__dict__", shared))
        yield


@contextmanager
def cluster_stub(port: int = 0, **options: Any) -> Iterator[ClusterStub]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"] or 0))
            if self.path == "/":
                status, result = stub.root(Call("", "", {}, None))
                return self._say(status, result)
            status, result = stub.answer(self.command, self.path, self.headers["api-key"] or "", content)
            if not status:
                self.close_connection = True
                return None
            shown = {"result": result, "status": "ok"} if status == 200 else {"status": {"error": result}}
            return self._say(status, {**shown, "time": 0.0})

        def _say(self, status: int, shown: Any) -> None:
            body = json.dumps(shown).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if status == 429:
                self.send_header("retry-after", "7")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _any  # noqa: N815 - the names that http.server asks for

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with _parsed_once(), ThreadingHTTPServer(("127.0.0.1", port), Handler) as http:
        stub = ClusterStub(f"http://127.0.0.1:{http.server_port}", **options)
        # The default poll interval makes every shutdown wait for half a second.
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            http.shutdown()
            thread.join()
            stub.engine.close()
