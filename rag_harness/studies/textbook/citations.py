"""The citations of an answer: sources by number, then chapters by name. Each valid citation becomes a link."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag_harness.studies.textbook.book_places import BookPlace, book_place_of
from rag_harness.types import Answer, Decision, Hit

NO_SOURCE = 0
"""Entry in ``invalid_citations`` for a chapter without a source in the context, and so without a number."""

_CHAPTER = re.compile(r"\b(?:Module\s+(\d{1,4})\s*(?:[,>:–—-]\s*)?)?Chapter\s+(\d{1,4})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """A valid citation: the source, its title, and the target of the link."""

    source: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer with all of its citations.

    ``unknown`` are named chapters without a source; ``ambiguous`` are named chapters that several modules have.
    """

    answer: Answer
    links: tuple[Link, ...]
    unknown: tuple[str, ...]
    ambiguous: tuple[str, ...]

    @property
    def nowhere(self) -> tuple[str, ...]:
        """What the answer cites that is not in the context: sources by number, chapters by name."""
        return (*(f"Source {n}" for n in self.answer.invalid_citations if n != NO_SOURCE), *self.unknown)

    @property
    def decision(self) -> Decision:
        """The citations that were found, for the row; the value counts the valid ones."""
        invalid = self.nowhere
        parts = [f"leads nowhere: {', '.join(invalid)}"] if invalid else []
        parts += [f"in several modules: {', '.join(self.ambiguous)}"] if self.ambiguous else []
        outcome = "invalid" if invalid else "cited" if self.links else "none"
        return Decision("citations", outcome, float(len(self.links)), reason="; ".join(parts))


def cited(answer: Answer, context: Sequence[Hit]) -> Cited:
    """Return ``answer``; the chapters that its text names are added to its citations."""
    places = [book_place_of(hit.chunk) for hit in context]
    numbers, unknown, ambiguous = dict.fromkeys(answer.citations), [], []
    for said, found in _named(answer.text, places):
        if len({places[n - 1].module for n in found}) > 1:
            ambiguous.append(said)
        elif found:
            # The best source of a chapter represents it, unless a source of the chapter is already cited by number.
            numbers.update({} if numbers.keys() & set(found) else {found[0]: None})
        else:
            unknown.append(said)
    invalid = (*answer.invalid_citations, *([NO_SOURCE] if unknown else []))
    full = replace(answer, citations=tuple(numbers), invalid_citations=tuple(dict.fromkeys(invalid)))
    links = tuple(Link(n, places[n - 1].title, places[n - 1].url) for n in numbers)
    return Cited(full, links, tuple(unknown), tuple(ambiguous))


def _named(text: str, places: Sequence[BookPlace]) -> Iterator[tuple[str, list[int]]]:
    """Yield each chapter that ``text`` names, once, with the sources from it, best first."""
    for said, module, chapter in dict.fromkeys(_mentions(text)):
        yield (
            said,
            [
                n
                for n, place in enumerate(places, 1)
                if place.chapter == chapter and (module is None or place.module == module)
            ],
        )


def _mentions(text: str) -> Iterator[tuple[str, int | None, int]]:
    for match in _CHAPTER.finditer(text):
        module, chapter = int(match[1]) if match[1] else None, int(match[2])
        yield (f"Module {module}, " if module is not None else "") + f"Chapter {chapter}", module, chapter
