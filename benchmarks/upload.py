"""What a chunk costs the process that sends it to a Qdrant server: processor time and bytes, by REST and by gRPC.

python benchmarks/upload.py                  20,000 chunks of 384 numbers and 2,000 characters; half a minute
python benchmarks/upload.py --chunks 2000    quickly

The server is a process that reads what comes and keeps nothing, so that what is measured is the client's part: points
made of chunks, JSON, HTTP; and, when a run is gone on with, asking what is there. No Qdrant was tried. gRPC, which the
harness does not use, is measured up to the bytes of a request. Processor time of this process, the median of five.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from side_by_side import show

from rag_harness.retrieval.indexes.server.connection import connect
from rag_harness.retrieval.indexes.server.points import Points, point_batches
from rag_harness.retrieval.indexes.server.server_options import ClusterOptions
from rag_harness.retrieval.indexes.server.upload import Upload
from rag_harness.types import Chunk, Matrix

DIMENSION, CHARACTERS, RUNS = 384, 2_000, 5
_SINK = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _any(self):
        asked = self.rfile.read(int(self.headers["content-length"] or 0))
        result = {"operation_id": 1, "status": "completed"}
        if self.command == "POST":
            result = [{"id": each, "payload": {"digest": "0" * 32}} for each in json.loads(asked)["ids"]]
        body = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = _any

    def log_message(self, *args):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_port, flush=True)
server.serve_forever()
"""


def like_chunks(count: int) -> tuple[list[Chunk], Matrix]:
    """Return chunks with texts of words and unit vectors (count, 384)."""
    generator = np.random.default_rng(7)
    words = ["".join(generator.choice(list("abcdefghijklmnopqrstuvwxyz"), size=6)) for _ in range(500)]
    texts = [" ".join(generator.choice(words, size=CHARACTERS // 7)) for _ in range(200)]
    pages = [f"handbook/part-{n // 50}.md" for n in range(count)]
    chunks = [
        Chunk(f"{page}#chunk_{n}", page, texts[n % 200], 0, CHARACTERS, ("Part", "Section"), metadata={"version": "2"})
        for n, page in enumerate(pages)
    ]
    rows = generator.normal(size=(count, DIMENSION)).astype(np.float32)
    return chunks, rows / np.linalg.norm(rows, axis=1, keepdims=True)


@contextmanager
def sink() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", _SINK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def rest_bytes(points: Points) -> int:
    vectors, payloads = points.vectors.tolist(), list(points.payloads)
    return len(json.dumps({"batch": {"ids": points.ids, "vectors": vectors, "payloads": payloads}}).encode())


def grpc_request(points: Points) -> bytes:
    from qdrant_client import grpc
    from qdrant_client.conversions.conversion import payload_to_grpc
    from qdrant_client.uploader.grpc_uploader import convert_vector_struct

    made = [
        grpc.PointStruct(
            id=grpc.PointId(uuid=name),
            vectors=convert_vector_struct(row),
            payload=payload_to_grpc(dict(payload)),
        )
        for name, row, payload in zip(points.ids, points.vectors, points.payloads, strict=True)
    ]
    request: bytes = grpc.UpsertPoints(collection_name="c", points=made, wait=True).SerializeToString()
    return request


def microseconds(work: Callable[[], Any], count: int) -> str:
    """Return the median processor time of this process, in µs for each of ``count``."""
    work()
    times = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        times.append((time.process_time() - started) / count * 1e6)
    return f"{statistics.median(times):.0f} µs"


def compare(count: int) -> list[list[str]]:
    chunks, vectors = like_chunks(count)

    def made() -> Iterator[Points]:
        return point_batches(chunks, vectors, "model@revision", ClusterOptions().batch)

    def uploaded(url: str, resumes: bool, parallel: int) -> Callable[[], object]:
        client = connect(url, "")
        return lambda: Upload(client, "c", ClusterOptions(parallel=parallel), resumes).run(made(), count)

    first = next(made())
    rest, grpc = f"{rest_bytes(first) / len(first):,.0f}", f"{len(grpc_request(first)) / len(first):,.0f}"
    with sink() as url:
        works: list[tuple[str, Callable[[], object], str]] = [
            ("points made of chunks", lambda: sum(map(len, made())), "-"),
            ("made and sent by REST, 1 request in flight", uploaded(url, False, 1), rest),
            ("the same, 4 in flight", uploaded(url, False, 4), rest),
            ("made, and bytes of gRPC", lambda: sum(len(grpc_request(each)) for each in made()), grpc),
            ("gone on with, when nothing is there", uploaded(url, True, 4), rest),
        ]
        return [[name, microseconds(work, count), size] for name, work, size in works]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    count = parser.parse_args().chunks
    title = f"{count:,} chunks of {CHARACTERS:,} characters, vectors of {DIMENSION} numbers"
    show(title, ["", "processor time a chunk", "bytes a chunk"], compare(count))


if __name__ == "__main__":
    main()
