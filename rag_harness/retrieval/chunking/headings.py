"""``headings``: a page by its H2 and H3, short sections joined, long ones split; for textbooks.

- The text before the first H2 or H3 is a chunk of its own, however short, called "Introduction".
- A section below ``least`` is joined with its neighbours under the same H2, forward first, while they fit.
- Across H2s (and H1s), two sections are joined only where both are below ``least``. A short section between two long
  ones stays short, because its neighbours are about something else.
- A section over ``max_tokens`` is split between blocks, with overlap; see ``balance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.balance import Balancer, one_section
from rag_harness.retrieval.chunking.heading_places import HeadingPlace, HeadingPlaces
from rag_harness.retrieval.chunking.heading_sections import HeadingSection, read_sections
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document


@dataclass(frozen=True, slots=True)
class _Unit:
    """The text under one place, or under several joined places. ``h2`` is the offset of the H2 around it."""

    places: tuple[HeadingPlace, ...]
    h2: int
    section: HeadingSection
    tokens: int

    @property
    def is_introduction(self) -> bool:
        return self.places[0].level == 0


_May = Callable[[_Unit, _Unit], bool]


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page into chunks, in the order of the page. A page without text gives none.

    Every non-blank character after the front matter is in at least one chunk. A line of code or a table row that fits
    is never cut.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    places, joiner = HeadingPlaces(document), _Joiner(document, tokenizer, settings)
    balancer = Balancer(document, tokenizer, settings)
    cuts = [
        (unit, piece) for unit in joiner.joined(_units(document, places)) for piece in balancer.pieces(unit.section)
    ]
    return [places.chunk(index, piece, _opening(unit, places), _path(unit)) for index, (unit, piece) in enumerate(cuts)]


def _units(document: Document, places: HeadingPlaces) -> Iterator[_Unit]:
    def place_of(section: HeadingSection) -> HeadingPlace:
        # A heading without a body is joined to the next section, so that section's own heading is the last.
        return places.at(section.titles.end - 1 if section.titles else section.start)

    h2 = 0
    for place, sections in groupby(read_sections(document.text), key=place_of):
        section = one_section(list(sections))
        above = [each.start for each in places.within(section.start, place.start + 1) if each.level in (1, 2)]
        h2 = above[-1] if above else h2
        yield _Unit((place,), h2, section, 0)


def _opening(unit: _Unit, places: HeadingPlaces) -> HeadingPlace:
    """Return the place for a link to the unit: its own heading, or the first of the joined ones."""
    if len(unit.places) == 1:
        return unit.places[0]
    held = places.within(unit.section.start, unit.section.end)
    return next((place for place in held if place.level >= 2), unit.places[0])


def _path(unit: _Unit) -> tuple[str, ...]:
    shared = zip(*(place.path for place in unit.places), strict=False)
    same = [titles[0] if len(set(titles)) == 1 else None for titles in shared]
    return tuple(title for title in same[: [*same, None].index(None)] if title)


class _Joiner:
    def __init__(self, document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> None:
        self._text, self._tokenizer = document.text, tokenizer
        self._least, self._most = settings.least, settings.max_tokens

    def joined(self, units: Iterator[_Unit]) -> list[_Unit]:
        least = self._least
        counted = [self._unit(unit.places, unit.h2, [unit.section]) for unit in units]
        forward = self._pass(counted, lambda left, right: left.h2 == right.h2 and left.tokens < least)
        back = self._pass(forward, lambda left, right: left.h2 == right.h2 and right.tokens < least)
        return self._pass(back, lambda left, right: left.tokens < least and right.tokens < least)

    def _pass(self, units: Sequence[_Unit], may: _May) -> list[_Unit]:
        kept: list[_Unit] = []
        for unit in units:
            both = self._both(kept[-1], unit) if kept and may(kept[-1], unit) else None
            kept[len(kept) - bool(both) :] = [both or unit]
        return kept

    def _both(self, left: _Unit, right: _Unit) -> _Unit | None:
        if left.is_introduction or right.is_introduction:
            return None
        both = self._unit((*left.places, *right.places), left.h2, [left.section, right.section])
        return both if both.tokens <= self._most else None

    def _unit(self, places: tuple[HeadingPlace, ...], h2: int, sections: Sequence[HeadingSection]) -> _Unit:
        section = one_section(sections, places[0].path)
        text = self._text[section.start : section.end].strip()
        return _Unit(places, h2, section, self._tokenizer.count([text])[0])
