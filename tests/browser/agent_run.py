"""A run of an agent: a trial that finds its two pages one after the other, and one with texts of strangers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_harness.core.types import Case, Query
from tests.unit.rows import make_row
from tests.unit.suite_tables import write_run

STRANGE = "<img src=x onerror=alert(1)> \u202e txt"


def _search(asked: Any, *chunks: str) -> dict[str, Any]:
    hits = [{"chunk_id": each, "filename": each.partition("#")[0], "score": 0.5} for each in chunks]
    return {"name": "search", "kind": "retrieve", "ms": 4.0, "input": asked, "hits": hits, "detail": {"k": 3}}


def agent_run(output: Path) -> Path:
    """Write the folder."""
    output.mkdir(parents=True, exist_ok=True)
    plan = {"name": "plan", "kind": "decide", "ms": 1.0, "input": "How long?", "output": ["return a lamp", "refund"]}
    steps = [
        plan,
        _search("return a lamp", "returns.md#0", "lamps.md#0"),
        {"name": "page", "kind": "tool", "ms": 2.0, "input": {"name": "returns.md"}, "output": "45 days. " * 40},
        _search({"query": "refund", "pages": ["refunds.md"]}, "returns.md#0", "refunds.md#1", "refunds.md#2"),
        _search("the moon"),
        {"name": "generate", "kind": "generate", "ms": 9.0},
    ]
    strange = [_search(STRANGE, f"{STRANGE}#0"), {"name": STRANGE, "kind": "tool", "ms": 0.0, "output": {STRANGE: 1}}]
    gold = {"returns.md": 1, "refunds.md": 1}
    cases = [Case(Query(f"q{n}", "How long, and when do I get my money?"), qrels=gold) for n in range(2)]
    rows = [make_row(experiment="a1", query_id=f"q{n}", stages=each) for n, each in enumerate((steps, strange))]
    write_run(output, rows, cases)
    return output
