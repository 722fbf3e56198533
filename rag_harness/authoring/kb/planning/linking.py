"""Links between drafts: a ring that nobody falls out of, and to what is about the same, near before far."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from random import Random

from rag_harness.authoring.kb.planning.draft import Draft

LEAST_LINKS, MOST_LINKS = 3, 5
"""Of a page to others; one to its other version comes on top."""
_NEAR = 3
"""Pages before and behind it in a group that a page may link to: the work stays linear where groups are large."""


def links_between(drafts: Sequence[Draft], seed: int) -> list[list[int]]:
    """Return for each draft the numbers of those that it links to; with few drafts fewer than ``LEAST_LINKS``."""
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
    """Yield the nearest of a sorted group, to both sides in turns."""
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
