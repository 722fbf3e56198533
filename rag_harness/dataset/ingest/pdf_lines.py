"""The lines of a PDF's pages with the sizes of their letters, and which of them are headings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import hypot
from typing import Any

_LARGER = 1.15
"""How much larger than most of the text a heading is at least."""
_LEVELS = 4
_LONGEST, _FULL_LINE = 120, 30
"""Characters of a heading at most, and of one that goes on in the next line at least."""
_MOST_OF_TEXT = 0.3
"""Share of the letters that may be in larger sizes. With more, size says nothing about headings."""
_MOST_TITLES = 5_000
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})

Titles = Mapping[int, Mapping[str, int]]
"""By page, from 0: the squeezed titles of the outline there, with their depths, from 1."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line, and the size of its smallest letter; 0 where that is not known. A table is one line without a size."""

    text: str
    size: float = 0.0


def lines_of(page: Any) -> list[PageLine]:
    """Return the lines of a page, as pypdf orders them. pypdf raises any error at a damaged page."""
    pieces: list[tuple[str, float]] = []

    def hear(text: str, cm: Sequence[float], tm: Sequence[float], _: object, size: float) -> None:
        if text:
            pieces.append((text, abs(size) * hypot(tm[2], tm[3]) * hypot(cm[2], cm[3])))

    text = page.extract_text(visitor_text=hear)
    if "".join(piece for piece, _ in pieces) != text:
        pieces = [(text, 0.0)]
    return list(_lines(pieces))


def cleaned(text: str) -> str:
    """Return text without NUL and lone surrogates, which fonts with damaged tables give, and without ligatures."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "").translate(_LIGATURES)


def squeezed(text: str) -> str:
    """Return text without white space, which readers of one PDF place differently."""
    return "".join(text.split())


def titles_of(reader: Any) -> Titles:
    """Return the titles of the outline; empty where the file has none, or a damaged one."""
    found: dict[int, dict[str, int]] = {}
    stack: list[tuple[Any, int]] = []
    with suppress(Exception):
        stack = [(reader.outline, 0)]
    seen = 0
    while stack and seen < _MOST_TITLES:
        each, depth = stack.pop()
        if isinstance(each, list):
            stack += [(inner, depth + 1) for inner in reversed(each)]
            continue
        seen += 1
        with suppress(Exception):
            page = reader.get_destination_page_number(each)
            if page is not None and (title := squeezed(cleaned(str(each.title)))):
                found.setdefault(page, {}).setdefault(title, depth)
    return found


def with_headings(pages: Sequence[Sequence[PageLine]], titles: Titles) -> Iterator[str]:
    """Yield the text of each page, with a mark of Markdown before each heading: by its size, or by the outline."""
    level_of = _levels(pages)
    running = _running(pages)
    for number, lines in enumerate(pages):
        made: list[str] = []
        last = 0.0
        for line in lines:
            level = 0
            if _may_be_heading(line.text) and squeezed(line.text) not in running:
                level = level_of.get(line.size) or min(6, titles.get(number, {}).get(squeezed(line.text), 0))
            if level and line.size and line.size == last and _FULL_LINE <= len(made[-1]) < _LONGEST:
                made[-1] = f"{made[-1]} {line.text.strip()}"  # a heading of two lines
            else:
                made.append(f"{'#' * level} {line.text.strip()}" if level else line.text)
            last = line.size if level else 0.0
        yield "\n".join(made).strip()


def _lines(pieces: Sequence[tuple[str, float]]) -> Iterator[PageLine]:
    line = ""
    sizes: list[float] = []
    for text, size in pieces:
        for at, part in enumerate(text.split("\n")):
            if at:
                yield PageLine(cleaned(line), min(sizes, default=0.0))
                line, sizes = "", []
            line += part
            if part.strip():
                sizes.append(round(2 * size) / 2)
    yield PageLine(cleaned(line), min(sizes, default=0.0))


def _levels(pages: Sequence[Sequence[PageLine]]) -> dict[float, int]:
    letters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            letters[line.size] += len(squeezed(line.text))
    del letters[0.0]
    if not letters:
        return {}
    usual = letters.most_common(1)[0][0]
    larger = sorted((size for size in letters if size >= usual * _LARGER), reverse=True)
    if sum(letters[size] for size in larger) > _MOST_OF_TEXT * letters.total():
        return {}
    return {size: min(at, _LEVELS) for at, size in enumerate(larger, 1)}


def _running(pages: Sequence[Sequence[PageLine]]) -> set[str]:
    """Return lines that most pages have: they name the document, and begin nothing."""
    counts = Counter(text for lines in pages for text in {squeezed(line.text) for line in lines})
    return {text for text, count in counts.items() if count > 2 and 2 * count > len(pages)}


def _may_be_heading(text: str) -> bool:
    said = text.strip()
    whole = 0 < len(said) <= _LONGEST and "\n" not in said and not said.startswith("#")
    return whole and said[-1] not in ".,;" and sum(map(str.isalpha, said)) > 1
