"""A question without an answer leaves a trace, too: where it failed and how, not what was said about it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.core.errors import CriticalError, ModelCallError
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.trace import Trace
from tests.unit.service.observing.test_metrics import told
from tests.unit.service.served import said_by, serving_app


class Fails:
    """A pipeline that fails in its stage ``generate``."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        with trace.stage("retrieve"):
            pass
        with trace.stage("generate"):
            raise self.error


async def asked(folder: Path, error: Exception) -> tuple[dict[str, Any], dict[str, float]]:
    """Ask one question; return its trace, and the metrics."""
    async with serving_app(folder, said_by(Fails(error))) as (app, service):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            answered = await client.post("/query", json={"query": "lamps?"})
            trace = await client.get(f"/traces/{answered.headers['x-request-id']}")
            return trace.json(), told(service.metrics)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelCallError("the key quokka is not known"), 503, "model_unavailable"),
        (CriticalError("the index of quokka is gone"), 503, "cannot_answer"),
    ],
)
def test_a_failure_is_traced_by_its_code_and_its_stage(
    tmp_path: Path, error: Exception, status: int, code: str
) -> None:
    trace, metrics = asyncio.run(asked(tmp_path, error))
    first, _, failed = trace["spans"]
    assert (trace["decision"], first["failed"], failed["failed"], failed["name"]) == ("failed", True, True, "generate")
    assert first["attributes"]["error.type"] == code
    assert first["attributes"]["http.response.status_code"] == status
    assert first["attributes"]["rag_harness.failed_stage"] == "generate"
    assert "quokka" not in json.dumps(trace)
    assert metrics["rag_harness_decisions_total{outcome=failed}"] == 1
    assert metrics["rag_harness_questions_in_flight"] == 0


def test_what_nobody_foresaw_is_traced_by_the_type_of_its_error(tmp_path: Path) -> None:
    trace, _ = asyncio.run(asked(tmp_path, ZeroDivisionError("quokka")))
    first = trace["spans"][0]["attributes"]
    assert (first["error.type"], first["http.response.status_code"]) == ("ZeroDivisionError", 500)
