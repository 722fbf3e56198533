"""A plan as JSON text. Each fact, row and list of links has its own line, for readers and for git."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rag_harness.authoring.kb.plan import Plan

_INDENT = "  "
_HEAD = ("title", "domain", "planned_by", "seed", "num_pages", "rot", "categories")


def plan_text(plan: Plan) -> str:
    """Return ``structure.json``; unknown fields are left out."""
    told = plan.model_dump(exclude_none=True)
    head = {key: told.pop(key) for key in _HEAD if key in told}
    pages, pairs = told.pop("pages"), told.pop("version_pairs", ())
    return "\n".join(_lines({**head, **told, "pages": pages, "version_pairs": pairs}, "")) + "\n"


def _lines(value: Any, indent: str, before: str = "", after: str = "") -> Iterator[str]:
    """Yield a value as JSON: on one line if it contains no other list or object."""
    if not _broken(value):
        yield f"{indent}{before}{_json(value)}{after}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{before}{opening}"
    entries = _entries(value)
    for number, (key, each) in enumerate(entries, 1):
        yield from _lines(each, indent + _INDENT, key, "," if number < len(entries) else "")
    yield f"{indent}{closing}{after}"


def _broken(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(isinstance(each, (dict, list, tuple)) for each in inner)


def _entries(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"{_json(key)}: ", each) for key, each in value.items()]
    return [("", each) for each in value]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
