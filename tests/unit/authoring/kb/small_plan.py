"""A small plan with facts: three pages, two of them versions of one."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from rag_harness.authoring.kb.plan import Brief, Plan, briefs

OLD = "Most items can be returned within 30 days of delivery."
NEW = "Most items can be returned within 45 days of delivery."
LABEL = "The return label costs €3.50 for each parcel."
STANDARD = "Standard shipping to Zone 1 costs €4.90 per order."
STEPS = ["Open the order page and choose Return.", "Print the label.", "Hand the parcel to the courier."]


def fact(name: str, kind: str, subject: str, value: str, statement: str) -> dict[str, str]:
    return {"id": name, "kind": kind, "subject": subject, "value": value, "statement": statement}


_LABEL = fact("r2", "amount", "return label", "€3.50", LABEL)
_TABLE = {
    "title": "Shipping prices by zone",
    "columns": ["Zone", "Standard", "Express"],
    "rows": [["Zone 1", "€4.90", "€9.90"], ["Zone 2", "€7.50", "€14.90"]],
}


def _page(name: str, title: str, category: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "filename": f"{name}.md", "title": title, "category": category, "status": "current"} | more


PLAN: dict[str, Any] = {
    "num_pages": 3,
    "rot": 0.6,
    "categories": ["shipping", "returns"],
    "pages": [
        _page(
            "shipping", "Shipping rates", "shipping", kind="tabular", links_to=["returns"], mermaid=False,
            tables=[_TABLE], effective_date="2026-01-15",
            facts=[
                fact("f1", "amount", "Standard shipping to Zone 1", "€4.90", STANDARD),
                fact("f2", "limit", "parcel", "31.5 kg", "A parcel may weigh at most 31.5 kg."),
                fact("f3", "date", "winter timetable", "1 November", "The winter timetable starts on 1 November."),
            ],
        ),
        _page(
            "returns-2024", "Returns 2024", "returns", kind="logical", links_to=["returns"], mermaid=True, tables=[],
            version="1", status="outdated", effective_date="2024-01-01", steps=STEPS,
            facts=[fact("r1", "limit", "Most items", "30 days", OLD), _LABEL],
        ),
        _page(
            "returns", "Returns", "returns", kind="logical", links_to=["returns-2024", "shipping"], mermaid=True,
            tables=[], version="2", effective_date="2025-11-01", supersedes="returns-2024", steps=STEPS,
            facts=[fact("r1", "limit", "Most items", "45 days", NEW), _LABEL],
        ),
    ],
    "version_pairs": [
        {
            "outdated": "returns-2024",
            "current": "returns",
            "conflicts": [{"fact": "r1", "outdated_statement": OLD, "current_statement": NEW}],
        }
    ],
}  # fmt: skip


def plan_data() -> dict[str, Any]:
    """Return the plan as JSON, for a test to change."""
    return deepcopy(PLAN)


def plan_of(data: dict[str, Any] | None = None) -> Plan:
    return Plan.model_validate(PLAN if data is None else data)


def brief_of(name: str, plan: Plan | None = None) -> Brief:
    return next(brief for brief in briefs(plan or plan_of()) if brief.page.id == name)


def write_plan(folder: Path, data: dict[str, Any] | None = None) -> Path:
    """Write the plan into ``folder`` and return its file."""
    file = folder / "structure.json"
    file.write_text(json.dumps(PLAN if data is None else data, indent=1, ensure_ascii=False), encoding="utf-8")
    return file
