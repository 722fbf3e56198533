"""A plan as text: a fact, a row, a list of links a line each, so that people can read it and git can compare it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rag_harness.kb.plan import Plan

_WIDTH = 120
_INDENT = "  "
_HEAD = ("title", "domain", "planned_by", "seed", "num_pages", "rot", "categories")


def plan_text(plan: Plan) -> str:
    """Return ``structure.json``; what is not known is left out."""
    told = plan.model_dump(exclude_none=True)
    head = {key: told.pop(key) for key in _HEAD if key in told}
    pages, pairs = told.pop("pages"), told.pop("version_pairs", ())
    return "\n".join(_lines({**head, **told, "pages": pages, "version_pairs": pairs}, "")) + "\n"


def _lines(value: Any, indent: str, before: str = "", after: str = "") -> Iterator[str]:
    """Yield a value as JSON: on one line where it fits, or where there is nothing in it that could be broken."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if not any(isinstance(each, (dict, list, tuple)) for each in inner):
        yield f"{indent}{before}{_json(value)}{after}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{before}{opening}"
    entries = [(f"{_json(key)}: ", each) for key, each in value.items()] if isinstance(value, dict) else [("", each) for each in value]
    for number, (key, each) in enumerate(entries, 1):
        yield from _lines(each, indent + _INDENT, key, "," if number < len(entries) else "")
    yield f"{indent}{closing}{after}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
