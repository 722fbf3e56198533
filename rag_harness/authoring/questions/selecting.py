"""Chooses the next fact: pages take turns, and each gives a fact of the kind that was used least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from rag_harness.authoring.questions.facts import Fact
from rag_harness.types import Document

WEIGHTS = {
    "condition": 1.0, "purpose": 1.0, "quantity": 1.5, "definition": 0.7, "property": 0.6, "permission": 0.7,
    "cell": 0.8, "amount": 1.0, "date": 0.7, "limit": 1.0, "rule": 0.8,
}  # fmt: skip
"""How often each kind is used relative to the others, if pages have facts of all kinds."""


_Thing = TypeVar("_Thing")


def shuffled(things: Sequence[_Thing], chance: Random) -> list[_Thing]:
    """Return things in a random order."""
    order = list(things)
    chance.shuffle(order)
    return order


def in_turn(pages: Sequence[Document], facts: Callable[[Document], Sequence[Fact]], chance: Random) -> Iterator[Fact]:
    """Yield the facts of all pages: one from each page in a random order, then a second one from each, and so on."""
    order = shuffled(pages, chance)
    left: dict[str, dict[str, list[Fact]]] = {}
    seen: Counter[str] = Counter()
    waiting = order
    while waiting:
        again = []
        for page in waiting:
            if page.doc_id not in left:
                left[page.doc_id] = _by_kind(facts(page), chance)
            fact = _next(left[page.doc_id], seen)
            if fact is not None:
                again.append(page)
                yield fact
            else:
                left[page.doc_id] = {}
        waiting = again


def _by_kind(facts: Sequence[Fact], chance: Random) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.kind, []).append(fact)
    for of_kind in found.values():
        chance.shuffle(of_kind)
    return found


def _next(left: dict[str, list[Fact]], seen: Counter[str]) -> Fact | None:
    kinds = [kind for kind, of_kind in left.items() if of_kind]
    if not kinds:
        return None
    kind = min(kinds, key=lambda each: (seen[each] / WEIGHTS[each], each))
    seen[kind] += 1
    return left[kind].pop()
