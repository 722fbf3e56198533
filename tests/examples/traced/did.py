"""What an app has really done, noted where it did it, and what its trace says of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_harness.pipelines.otel.steps import SeenTrace

PAGES = {
    "returns.md": "You can return a lamp within 45 days of its delivery, unused and in its box.",
    "shipping.md": "Express delivery of a lamp costs 9.90 euros in zone 1, and takes one day.",
    "warranty.md": "The warranty of a lamp lasts two years from the day of its purchase.",
    "repair.md": "A lamp that flickers is repaired in our workshop, which takes a week.",
}
QUESTION = "How long is the warranty of a lamp?"
PLACES = 6
"""Decimal places that scores agree to."""


@dataclass
class Did:
    """What an app did: searches with query, ids and scores; ids that rerankers kept; tools; calls of models."""

    searches: list[list[Any]] = field(default_factory=list)
    kept: list[list[str]] = field(default_factory=list)
    tools: list[list[Any]] = field(default_factory=list)
    calls: int = 0
    given: list[str] | None = None

    def searched(self, query: str, ids: Sequence[str], scores: Sequence[float | None]) -> None:
        """Note a search."""
        self.searches.append([query, list(ids), [None if each is None else round(each, PLACES) for each in scores]])

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


def told(seen: SeenTrace, has_given: bool) -> dict[str, Any]:
    """Return what a trace says of the same. The name of a page is an id, or a name in the metadata."""

    def name(at: int) -> str:
        document = seen.outcome.documents[at]
        return next((each for each in (document.id, *document.names) if each in PAGES), "")

    did = Did()
    for step, found in zip(seen.steps, seen.outcome.of_step, strict=True):
        if step.kind == "retrieve":
            did.searched(step.input or "", list(map(name, found)), [each.score for each in found.values()])
        elif step.kind == "rerank":
            did.kept.append(list(map(name, found)))
        elif step.kind == "tool":
            did.tools.append([step.name, step.input])
        elif step.kind == "generate":
            did.calls += 1
    if has_given:
        did.given = list(map(name, seen.given))
    return did.as_json()
