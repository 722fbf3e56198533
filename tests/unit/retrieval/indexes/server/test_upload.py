from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from httpx import ConnectError, Headers
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_harness.retrieval.indexes.server.points import Points, point_batches
from rag_harness.retrieval.indexes.server.server_options import ClusterOptions
from rag_harness.retrieval.indexes.server.upload import UPLOAD_TRIES, Upload
from rag_harness.work.reporting import listening
from tests.unit.retrieval.indexes.random_vectors import named, random_rows


def answer(status: int, said: bytes = b"") -> UnexpectedResponse:
    return UnexpectedResponse(status, "", said, Headers())


class Server:
    """Keeps digests by id, and how it was asked; ``failures`` are raised first, in turn."""

    def __init__(self, *failures: Exception) -> None:
        self.there: dict[str, str] = {}
        self.waits: list[bool] = []
        self.failures = list(failures)
        self.busy = self.busiest = 0
        self.lock = Lock()

    def upsert(self, collection: str, batch: Any, wait: bool) -> None:
        with self.lock:
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
            failure = self.failures.pop(0) if self.failures else None
        try:
            sleep(0.001)
            if failure:
                raise failure
            with self.lock:
                self.waits.append(wait)
                self.there |= {name: each["digest"] for name, each in zip(batch.ids, batch.payloads, strict=True)}
        finally:
            with self.lock:
                self.busy -= 1

    def retrieve(self, collection: str, ids: list[str], **how: Any) -> list[Any]:
        assert how == {"with_payload": ["digest"], "with_vectors": False}
        known = [name for name in ids if name in self.there]
        return [SimpleNamespace(id=name, payload={"digest": self.there[name]}) for name in known]


def made(count: int, size: int = 4, model: str = "m") -> Iterator[Points]:
    return point_batches(named(count), random_rows(count, 3), model, size)


def upload(server: Server, resumes: bool = False, pauses: list[float] | None = None, **options: Any) -> Upload:
    slept = pauses if pauses is not None else []
    return Upload(server, "c", ClusterOptions(**{"parallel": 3, **options}), resumes, slept.append)


def test_all_points_are_sent_in_parallel_and_the_last_waits() -> None:
    server, heard = Server(), list[int]()
    done = upload(server).run(made(96), 96, heard.append)
    assert (done.sent, done.kept, len(server.there)) == (96, 0, 96)
    assert heard == list(range(4, 97, 4))
    assert server.busiest == 3
    assert len(server.waits) == 24
    assert server.waits[-1]
    assert server.waits.count(True) == 4  # of 24 batches those numbered 0, 8 and 16, and the last
    assert "96 points sent in" in done.line()


def test_no_more_batches_are_made_than_are_in_flight() -> None:
    server, asked, heard = Server(), list[int](), list[int]()

    def counted() -> Iterator[Points]:
        for batch in made(100):
            asked.append(len(asked) - len(heard))
            yield batch

    upload(server).run(counted(), 100, heard.append)
    assert max(asked) <= 3 + 2  # what is in flight, what is handed over, and what is looked at for being the last


def test_one_at_a_time_is_done_by_the_caller() -> None:
    server = Server()
    upload(server, parallel=1).run(made(20), 20)
    assert (server.busiest, len(server.there)) == (1, 20)


@pytest.mark.parametrize(
    "failure",
    [answer(500), answer(503), answer(429), answer(408), ResponseHandlingException(ConnectError("gone"))],
    ids=["500", "503", "429", "408", "unreachable"],
)
def test_what_may_pass_is_sent_again_after_longer_and_longer(failure: Exception) -> None:
    server, pauses = Server(failure, failure, failure), list[float]()
    upload(server, pauses=pauses, parallel=1).run(made(20), 20)
    assert pauses == [0.5, 1, 2]
    assert len(server.there) == 20


def test_a_server_says_how_long_to_wait() -> None:
    server, pauses = Server(ResourceExhaustedResponse("slow down", 7)), list[float]()
    upload(server, pauses=pauses).run(made(20), 20)
    assert pauses == [7]


@pytest.mark.parametrize(
    ("failure", "calls"),
    [
        (answer(500), UPLOAD_TRIES),
        (answer(507), 1),
        (answer(500, b'{"status": {"error": "No space left on device"}}'), 1),
        (answer(400), 1),
        (answer(403), 1),
        (ValueError("a mistake"), 1),
    ],
    ids=["500", "507", "disk full", "400", "403", "mistake"],
)
def test_what_cannot_pass_is_not_sent_again(failure: Exception, calls: int) -> None:
    server = Server(*[failure] * 9)
    with pytest.raises(type(failure)):
        upload(server, parallel=1).run(made(4), 4)
    assert len(server.failures) == 9 - calls


def test_after_a_failure_nothing_more_is_sent() -> None:
    server = Server(answer(400))
    with pytest.raises(UnexpectedResponse):
        upload(server).run(made(400), 400)
    assert len(server.there) < 40


def test_points_that_are_there_are_not_sent_again() -> None:
    server = Server()
    upload(server).run(made(50), 50)
    server.waits.clear()
    done = upload(server, resumes=True).run(made(90), 90)
    assert (done.sent, done.kept) == (40, 50)
    assert len(server.waits) == 11  # batches of 4: the thirteenth has two that are there
    changed = upload(server, resumes=True).run(made(90, model="another"), 90)
    assert (changed.sent, changed.kept) == (90, 0)


def test_who_hears_of_it_may_stop_it() -> None:
    def lost(done: int) -> None:
        raise RuntimeError("taken over")

    server = Server()
    with pytest.raises(RuntimeError, match="taken over"):
        upload(server).run(made(400), 400, lost)
    assert len(server.there) < 40


def test_progress_is_reported_from_nothing_to_all() -> None:
    heard: list[tuple[int, int]] = []
    with listening(lambda what, done, total, unit: heard.append((done, total))):
        upload(Server()).run(made(12), 12)
    assert heard == [(0, 12), (4, 12), (8, 12), (12, 12)]


def test_nothing_is_uploaded_of_nothing() -> None:
    assert upload(Server()).run(iter([]), 0).sent == 0


def test_a_batch_without_what_is_there() -> None:
    points = Points(["a", "b"], np.eye(2, dtype=np.float32), [{"digest": "1"}, {"digest": "2"}])
    assert points.but({}) is points
    rest = points.but({"a": "1", "b": "old"})
    assert (rest.ids, rest.vectors.tolist(), rest.payloads) == (["b"], [[0.0, 1.0]], [{"digest": "2"}])
