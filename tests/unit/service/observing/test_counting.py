from __future__ import annotations

import asyncio
import io
import json
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.service.monitoring import Counting, Metrics, logging_to
from tests.unit.service.observing.test_metrics import told


def request(app: Any, metrics: Metrics, route: str | None = "/query", kind: str = "http") -> list[dict[str, Any]]:
    """Send one request through the middleware; return the lines it logged."""
    scope: dict[str, Any] = {
        "type": kind,
        "method": "POST",
        "path": "/query?key=abc",
        "state": {"trace_id": "t1"},
        "app": SimpleNamespace(state=SimpleNamespace(service=SimpleNamespace(metrics=metrics))),
    }
    if route:
        scope["route"] = SimpleNamespace(path=route)

    async def send(message: Any) -> None:
        pass

    stream = io.StringIO()
    with logging_to(stream):
        asyncio.run(Counting(app)(scope, None, send))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 201})
    await send({"type": "http.response.body", "body": b""})


async def leaves(scope: Any, receive: Any, send: Any) -> None:
    raise asyncio.CancelledError


def test_a_request_is_a_count_and_a_line_of_fields() -> None:
    metrics = Metrics()
    (line,) = request(answers, metrics)
    kept = {name: line[name] for name in ("event", "method", "route", "status", "trace_id")}
    assert kept == {"event": "request", "method": "POST", "route": "/query", "status": 201, "trace_id": "t1"}
    assert 0 <= line["ms"] < 1_000
    assert told(metrics)["rag_harness_requests_total{method=POST,route=/query,status=201}"] == 1


def test_a_path_that_is_none_is_not_repeated() -> None:
    metrics = Metrics()
    (line,) = request(answers, metrics, route=None)
    assert line["route"] == "none"
    assert told(metrics)["rag_harness_requests_total{method=POST,route=none,status=201}"] == 1


def test_who_left_before_the_answer_is_counted_as_that() -> None:
    metrics = Metrics()
    with pytest.raises(asyncio.CancelledError):
        request(leaves, metrics)
    assert told(metrics)["rag_harness_requests_total{method=POST,route=/query,status=499}"] == 1


@pytest.mark.parametrize("route", ["/health", "/ready", "/metrics"])
def test_what_machines_ask_every_few_seconds_is_counted_and_not_logged(route: str) -> None:
    metrics = Metrics()
    assert request(answers, metrics, route=route) == []
    assert told(metrics)[f"rag_harness_requests_total{{method=POST,route={route},status=201}}"] == 1


def test_what_is_no_request_passes_through() -> None:
    metrics = Metrics()
    assert request(answers, metrics, kind="lifespan") == []
    assert not [name for name in told(metrics) if name.startswith("rag_harness_requests_total")]
