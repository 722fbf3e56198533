"""Reads which tools an agent should call for a question: ``"tools": [{"name": "price", "args": {"sku": "T-18"}}]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_harness.errors import unknown
from rag_harness.expectations.contradicting import in_short
from rag_harness.types import ExpectedTool

MOST_TOOLS = 100
"""The most expected calls of a case."""
_KEYS = ("name", "args")


def tools_of(raw: object) -> tuple[tuple[ExpectedTool, ...], list[str]]:
    """Return the calls that ``raw`` lists, in their order, and what is wrong with it, a sentence each."""
    if not isinstance(raw, list):
        return (), [f'a list of objects was expected, e.g. [{{"name": "price"}}]; found {in_short(raw)}']
    if len(raw) > MOST_TOOLS:
        return (), [f"{len(raw):,} calls; a case may expect {MOST_TOOLS}"]
    problems = [f"call {number}: {said}" for number, each in enumerate(raw, 1) if (said := _problem(each))]
    return () if problems else tuple(ExpectedTool(each["name"], each.get("args")) for each in raw), problems


def tools_as_json(tools: Sequence[ExpectedTool]) -> list[dict[str, Any]]:
    """Return expected calls as ``tools_of`` reads them."""
    return [{"name": each.name, **({} if each.args is None else {"args": dict(each.args)})} for each in tools]


def _problem(raw: object) -> str:
    if not isinstance(raw, dict):
        return f'an object was expected, e.g. {{"name": "price"}}; found {in_short(raw)}'
    if strange := [key for key in raw if key not in _KEYS]:
        return unknown("key", strange[0], _KEYS)
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return "name is missing: the name of the tool, a text"
    if not isinstance(raw.get("args", {}), dict):
        return f'args: an object was expected, e.g. {{"sku": "T-18"}}; found {in_short(raw["args"])}'
    return ""
