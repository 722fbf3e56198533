"""Spans of real frameworks, kept in files, tell what the app really did: searches, hits, ids, scores, calls, tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.pipelines.otel.spans import spans_of_request
from rag_harness.pipelines.otel.steps import read_trace
from tests.examples.traced.did import told

KEPT = sorted((Path(__file__).parent / "kept").glob("*.jsonl"))
LINES = [(file.stem, json.loads(line)) for file in KEPT for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("framework", "line"), LINES, ids=[f"{name}-{line['shape']}" for name, line in LINES])
def test_a_kept_trace_tells_what_the_app_did(framework: str, line: dict[str, Any]) -> None:
    seen = read_trace(list(spans_of_request(line["spans"])), line["said"])
    assert told(seen, line["did"]["given"] is not None) == line["did"]


def test_three_frameworks_are_kept_in_ten_shapes_each() -> None:
    assert {name: sum(name == other for other, _ in LINES) for name, _ in LINES} == {
        "haystack": 10,
        "langchain": 10,
        "llamaindex": 10,
    }
