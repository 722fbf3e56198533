"""Small plans to break."""

from __future__ import annotations

from typing import Any

from rag_harness.authoring.kb.plan import Conflict, Plan, PlannedFact, PlannedTable, PlanPage, VersionPair


def fact(number: int, value: str = "€4.90") -> PlannedFact:
    statement = f"Parcel {number} costs {value} per order."
    return PlannedFact(id=f"f{number}", kind="amount", subject=f"Parcel {number}", value=value, statement=statement)


def page(name: str, *goals: str, **said: Any) -> PlanPage:
    told = {"id": name, "filename": f"{name}.md", "title": name.title(), "kind": "mixed", "links_to": goals}
    content = {"tables": (TABLE,), "steps": ("Ask at the desk.",)}
    return PlanPage.model_validate({**told, **content, **said})


TABLE = PlannedTable(title="Prices", columns=("Zone", "Price"), rows=(("1", "€3"), ("2", "€5")))
OLD = page("rates-2023", "rates", facts=(fact(1, "€3.90"), fact(2)), status="outdated", version="1")
NEW = page("rates", "rates-2023", facts=(fact(1), fact(2)), status="current", version="2", supersedes="rates-2023")
OTHER = page("gifts", "rates", facts=(fact(3),))
PAIR = VersionPair(
    outdated="rates-2023",
    current="rates",
    conflicts=(
        Conflict(fact="f1", outdated_statement=fact(1, "€3.90").statement, current_statement=fact(1).statement),
    ),
)


def plan(*pages: PlanPage, **said: Any) -> Plan:
    return Plan(pages=pages or (OLD, NEW, OTHER), **{"version_pairs": (PAIR,), **said})
