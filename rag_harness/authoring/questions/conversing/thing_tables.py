"""The tables of a page by the things in them, so that one of them can be called "the other one"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.quotable_passages import QuotablePassage, passages
from rag_harness.types import Document


@dataclass(frozen=True, slots=True)
class ThingTable:
    """A table of a page.

    Attributes:
        size: how many things the table has, with those of which no fact was read.
        facts: by thing and attribute, the facts.
    """

    size: int
    facts: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict)

    def others(self, thing: str) -> list[str]:
        """Return the other things with facts, in the order of the table."""
        return [name for name in self.facts if name != thing]


def tables_of(document: Document, facts: Sequence[Fact]) -> list[ThingTable]:
    """Return the tables of a document whose facts are attributes of things."""
    rows = {passage.start: passage for passage in passages(document) if passage.names}
    rows_of: dict[tuple[object, ...], list[QuotablePassage]] = defaultdict(list)
    for passage in rows.values():
        rows_of[passage.section, passage.names].append(passage)
    found: dict[tuple[object, ...], dict[str, dict[str, Fact]]] = defaultdict(lambda: defaultdict(dict))
    sizes: dict[tuple[object, ...], int] = {}
    for fact in facts:
        row = rows.get(fact.start)
        if row is None or "thing" not in fact.parts:
            continue
        is_turned = _is_attribute_of_row(fact, row)
        key = (row.section, row.names, is_turned)
        sizes[key] = len(row.names) - 1 if is_turned else len(rows_of[row.section, row.names])
        found[key][fact.parts["thing"]].setdefault(fact.parts["attribute"], fact)
    return [ThingTable(sizes[key], things) for key, things in found.items()]


def _is_attribute_of_row(fact: Fact, row: QuotablePassage) -> bool:
    """Whether the row is the attribute, and the columns are the things."""
    return row.cells[0].casefold().removeprefix("the ") == fact.parts["attribute"].casefold()
