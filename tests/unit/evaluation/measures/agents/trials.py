"""Trials of an agent, made up in a line."""

from __future__ import annotations

from typing import Any

from rag_harness.core.types import Case, ExpectedTool, Query
from rag_harness.records.row import ExperimentResult
from tests.unit.rows import make_row


def search(asked: Any, *chunks: str, name: str = "search") -> dict[str, Any]:
    """Return a search step. A chunk is ``page.md#n``."""
    hits = [{"chunk_id": each, "filename": each.partition("#")[0], "score": 1.0} for each in chunks]
    return {"name": name, "kind": "retrieve", "ms": 1.0, "input": asked, "hits": hits}


def tool(name: str, arguments: Any = None) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"name": name, "kind": "tool", "ms": 1.0, "input": {} if arguments is None else arguments}


def did(*steps: dict[str, Any], **more: Any) -> ExperimentResult:
    """Return the row of a trial with these steps."""
    return make_row(stages=list(steps), **more)


def needing(*pages: str, tools: tuple[ExpectedTool, ...] | None = None) -> Case:
    """Return a case that needs these pages."""
    return Case(Query("q1", "?"), qrels=dict.fromkeys(pages, 1), tools=tools)


def expecting(*calls: str | tuple[str, dict[str, Any]]) -> Case:
    """Return a case that expects these calls: names, or names with arguments."""
    return needing(tools=tuple(ExpectedTool(each) if isinstance(each, str) else ExpectedTool(*each) for each in calls))
