"""The place of a chunk in a book: its module and chapter, the heading above it, and the address of that heading."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.dataset.slugs import numbered
from rag_harness.retrieval.chunking.front_matter import front_matter
from rag_harness.retrieval.chunking.heading_sections import Heading, body_start, read_headings
from rag_harness.retrieval.chunking.packing import Piece
from rag_harness.types import Chunk, Document

INTRODUCTION = "Introduction"
"""The heading of the text before a page's first H2 or H3. The page need not have such a heading."""
DEEPEST_HEADING = 3
"""Deeper headings belong to the H2 or H3 above them."""


@dataclass(frozen=True, slots=True)
class HeadingPlace:
    """The introduction of a page (level 0), or a heading down to H3, with the text below it.

    ``start`` is an offset in the page. ``anchor`` is GitHub's anchor, empty without a heading.
    """

    start: int
    level: int
    heading: str
    anchor: str
    path: tuple[str, ...]


class HeadingPlaces:
    """The places of one page, in order. The first is its introduction."""

    def __init__(self, document: Document) -> None:
        self._document, self._front = document, front_matter(document.text)
        self._places = list(_places(document))
        self._starts = [place.start for place in self._places]

    def at(self, offset: int) -> HeadingPlace:
        """Return the place of the character at ``offset``."""
        return self._places[max(0, bisect_right(self._starts, offset) - 1)]

    def within(self, start: int, end: int) -> Sequence[HeadingPlace]:
        """Return the place at ``start`` and all that begin before ``end``."""
        first = max(0, bisect_right(self._starts, start) - 1)
        return self._places[first : max(first + 1, bisect_right(self._starts, end - 1))]

    def chunk(self, index: int, piece: Piece, place: HeadingPlace | None = None, path: Sequence[str] = ()) -> Chunk:
        """Return the chunk of ``piece`` with the place ``place``, by default that of its first character.

        Its metadata is that of the page and ``heading``, ``anchor``, ``section_ids`` (the anchors of all places in it);
        ``module``, ``module_title`` and ``chapter`` if the front matter names a module; ``url`` if it has one.
        """
        found = place or self.at(piece.start)
        held = [each.anchor for each in self.within(piece.start, piece.end) if each.anchor]
        return Chunk(
            chunk_id=f"{self._document.doc_id}#chunk_{index}",
            doc_id=self._document.doc_id,
            text=piece.repeated_header + self._document.text[piece.start : piece.end],
            start=piece.start,
            end=piece.end,
            section=tuple(path) or found.path,
            index=index,
            repeated_header=piece.repeated_header,
            metadata={**self._book(), **self._document.metadata, **self._address(found), "section_ids": held},
        )

    def _book(self) -> dict[str, Any]:
        # A chapter without its module is ambiguous: every module has a chapter 1.
        named = ("module", "module_title", "chapter") if "module" in self._front else ()
        return {key: self._front[key] for key in named if key in self._front}

    def _address(self, place: HeadingPlace) -> dict[str, Any]:
        page = self._front.get("url")
        address = f"{page}#{place.anchor}" if place.anchor else str(page)
        return {"heading": place.heading, "anchor": place.anchor, **({"url": address} if page else {})}


def _places(document: Document) -> Iterator[HeadingPlace]:
    headings = read_headings(document.text)
    anchors = numbered(heading.title for heading in headings)
    title = _page_title(headings)
    path = (title.title if title else document.title,)
    yield HeadingPlace(body_start(document.text), 0, INTRODUCTION, anchors[0] if title else "", path)
    for heading, anchor in zip(headings, anchors, strict=True):
        if heading.level <= DEEPEST_HEADING and heading is not title:
            yield HeadingPlace(heading.start, heading.level, heading.title, anchor, heading.path)


def _page_title(headings: Sequence[Heading]) -> Heading | None:
    return headings[0] if headings and headings[0].level == 1 and headings[0].title else None
