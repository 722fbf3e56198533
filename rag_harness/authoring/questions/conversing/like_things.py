"""The attributes that tables tell of like things."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from rag_harness.authoring.questions.compared import figure_in_cell
from rag_harness.authoring.questions.conversing.thing_tables import ThingTable
from rag_harness.authoring.questions.usual import IN_COMMON

_PAGES = 2
"""How many pages must have an attribute of like things before it is asked about one of them."""
_COMMON = 1 / 10
"""From this share of the pages with tables on, all things have an attribute: it makes none of them alike."""


class LikeThings:
    """The attributes of the things of tables.

    Args:
        tables: the tables, each with its page.
    """

    def __init__(self, tables: Iterable[tuple[str, ThingTable]]) -> None:
        self._together: dict[frozenset[str], set[str]] = defaultdict(set)
        self._units: dict[str, set[str]] = defaultdict(set)
        pages: dict[str, set[str]] = defaultdict(set)
        for page, table in tables:
            for told in table.facts.values():
                self._together[frozenset(told)].add(page)
                for attribute, fact in told.items():
                    pages[attribute].add(page)
                    figure = figure_in_cell(fact)
                    self._units[attribute].update({figure[1]} if figure and figure[1] else ())
        least = max(_PAGES + 2, _COMMON * len(set().union(*pages.values())))
        self._common = frozenset(attribute for attribute, having in pages.items() if len(having) >= least)

    def of_like_things(self, own: frozenset[str]) -> set[str]:
        """Return the attributes that things with these attributes have elsewhere, and those that most things have."""
        pages: Counter[str] = Counter()
        for told, where in self._together.items():
            shared = told & own
            alike = len(shared) >= IN_COMMON
            fitting = told if alike and shared - self._common else told & self._common if alike else ()
            pages.update(dict.fromkeys(fitting, len(where)))
        return {attribute for attribute, count in pages.items() if count >= _PAGES} - own

    def units(self, attribute: str) -> set[str]:
        """Return the units of an attribute's figures."""
        return self._units.get(attribute, set())
