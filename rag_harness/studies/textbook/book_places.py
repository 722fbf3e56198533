"""The place of a chunk in the book: module, chapter, heading, and the address for a link."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rag_harness.dataset.slugs import slug
from rag_harness.types import Chunk

_PATH = re.compile(r"(?:^|/)module-(\d{1,4})/chapter-(\d{1,4})\b")
_NUMBER = re.compile(r"\s*(\d{1,4})\s*")


@dataclass(frozen=True, slots=True)
class BookPlace:
    """The place of a section. A number is None if neither the page's metadata nor its path has it.

    ``path`` has titles, outermost first: module, chapter, heading. ``url`` leads to the heading.
    """

    module: int | None
    chapter: int | None
    path: tuple[str, ...]
    url: str

    @property
    def title(self) -> str:
        """Its last two titles, as a student sees them."""
        return " > ".join(self.path[-2:])


def book_place_of(chunk: Chunk) -> BookPlace:
    """Return the place of a chunk from its metadata; missing parts come from the path of its file."""
    known = chunk.metadata
    found = _PATH.search(chunk.doc_id)
    module, chapter = _number(known.get("module")), _number(known.get("chapter"))
    if module is None and chapter is None and found:
        module, chapter = int(found[1]), int(found[2])
    return BookPlace(module, chapter, _path(chunk, module, chapter), _url(chunk))


def _number(value: Any) -> int | None:
    match = _NUMBER.fullmatch(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    return int(match[1]) if match else None


def _path(chunk: Chunk, module: int | None, chapter: int | None) -> tuple[str, ...]:
    title = str(chunk.metadata.get("title") or (chunk.section[0] if chunk.section else chunk.doc_id))
    below = chunk.section[1:] if chunk.section[:1] == (title,) else chunk.section
    # The text before a page's first heading has a heading from its chunker.
    below = below or tuple(filter(None, [str(chunk.metadata.get("heading") or "")]))
    of_module = _named("Module", module, str(chunk.metadata.get("module_title") or ""))
    return tuple(part for part in (of_module, _named("Chapter", chapter, title), *below) if part)


def _named(kind: str, number: int | None, title: str) -> str:
    if number is None:
        return title
    return f"{kind} {number}: {title}" if title else f"{kind} {number}"


def _url(chunk: Chunk) -> str:
    """Return the page's address with the anchor of the heading. Without an address, the file's path is used."""
    address = str(chunk.metadata.get("url") or f"/{chunk.doc_id.removesuffix('.md')}")
    if "#" in address or len(chunk.section) < 2:
        return address
    return f"{address}#{slug(chunk.section[-1])}"


def different_titles(chunks: Iterable[Chunk], most: int) -> list[str]:
    """Return the titles of the first ``most`` different sections."""
    found: dict[str, None] = {}
    for chunk in chunks:
        found[book_place_of(chunk).title] = None
        if len(found) == most:
            break
    return list(found)
