"""The tasks for a model that plans: categories, titles of a category, contents of a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.authoring.kb.planning.wanted import PlanRequest

LEAST_FACTS, MOST_FACTS = 4, 10
PORTION = 20
"""How many titles are asked for at once. Longer lists repeat themselves."""
MOST_CATEGORIES = 16
_KNOWN = 300
"""How many of the last titles a model is shown again. Its reply is compared with all titles anyway."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The name of a knowledge base, and its categories."""

    title: str
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageTask:
    """A page that is to be planned; ``versions``: whether it replaced another page."""

    title: str
    category: str
    kind: str
    versions: bool

    def told(self, wanted: PlanRequest, outline: Outline) -> str:
        """Return the task as text."""
        needs = [f"{LEAST_FACTS} to {MOST_FACTS} facts"]
        needs += ["a table"] * (self.kind != "logical") + ["steps"] * (self.kind != "tabular")
        needs += ["older"] * self.versions
        page = {"title": self.title, "category": self.category, "needs": needs}
        return _json({**_about(wanted), "knowledge base": outline.title, "page": page})


def outline_task(wanted: PlanRequest) -> str:
    """Return the task that asks for categories."""
    count = categories_for(wanted.pages)
    form = '{"title": "what the knowledge base is called", "categories": ["…"]}'
    return f"{_json(_about(wanted))}\n\nName it, and {count} categories that its pages fall into. Form: {form}"


def titles_task(wanted: PlanRequest, outline: Outline, category: str, count: int, known: Sequence[str]) -> str:
    """Return the task that asks for titles of a category that are not among the known ones."""
    told = {**_about(wanted), "knowledge base": outline.title, "categories": outline.categories}
    return "\n\n".join(
        [
            _json(told),
            f"Write {count} titles of pages in the category {_json(category)}.",
            *([f"There are already: {_json(known[-_KNOWN:])}"] if known else []),
            'Form: {"titles": ["…"]}',
        ]
    )


def categories_for(pages: int) -> int:
    """Return how many categories are asked for, given the number of pages."""
    return max(1, min(MOST_CATEGORIES, math.isqrt(pages)))


def _about(wanted: PlanRequest) -> dict[str, object]:
    # The seed makes the request different. Otherwise a recording would give the old answer.
    return {"about": wanted.domain, **({"variant": wanted.seed} if wanted.seed else {})}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
