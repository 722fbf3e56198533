"""Links between drafts: a ring that reaches every page, and links to pages about the same, the closest first."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from random import Random

from rag_harness.authoring.kb.planning.draft import Draft

LEAST_LINKS, MOST_LINKS = 3, 5
"""How many links a page has to others. A link to its other version is added."""
_NEAR = 3
"""How many pages before and after it in a group a page may link to. The work stays linear in large groups."""


def links_between(drafts: Sequence[Draft], seed: int) -> list[list[int]]:
    """Return for each draft the numbers of its links' targets. With few drafts, fewer than ``LEAST_LINKS``."""
    ring = sorted(range(len(drafts)), key=lambda number: (drafts[number].category, drafts[number].about, number))
    groups = _groups(drafts)
    links: list[list[int]] = [[] for _ in drafts]
    for place, number in enumerate(ring):
        count = Random(f"{seed} {drafts[number].id} links").randint(LEAST_LINKS, MOST_LINKS)
        near = (goal for about in drafts[number].about for goal in _around(groups[about], number))
        behind = (ring[(place + step) % len(ring)] for step in range(2, len(ring)))
        links[number] = _first(count, number, [ring[(place + 1) % len(ring)]], near, behind)
    return links


def _groups(drafts: Sequence[Draft]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, draft in enumerate(drafts):
        for about in draft.about:
            groups[about].append(number)
    return groups


def _around(group: list[int], number: int) -> Iterator[int]:
    """Yield the nearest members of a sorted group, from both sides in turn."""
    place = bisect_left(group, number)
    for distance in range(1, _NEAR + 1):
        yield from (group[each] for each in (place + distance, place - distance) if 0 <= each < len(group))


def _first(count: int, own: int, *sources: Iterable[int]) -> list[int]:
    found: dict[int, None] = {}
    for goal in chain.from_iterable(sources):
        if len(found) == count:
            break
        if goal != own:
            found[goal] = None
    return list(found)
