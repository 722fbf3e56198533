"""The citation marks of an answer's text: which sources each mark names, and which claim it may support."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.service.document_sentences import document_sentences
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.cited import cited_sources
from rag_harness.words.language import foreign
from rag_harness.words.languages import ENGLISH
from rag_harness.words.sentence_ends import Span, stripped

_BETWEEN = re.compile(r"(?:[\s,;&]|\band\b)*\Z")
_OPENERS = ",;:.)-*•+>"
"""Characters that may stand between a mark and the claim after it, and before an item of a list."""


@dataclass(frozen=True, slots=True)
class CitationMark:
    """``[Source 2]``, or several marks side by side: the sources they name, and the text that they may support.

    ``before`` is the sentence's text before the mark, from the last mark on; if a sentence ends before the mark, it is
    that sentence. ``behind`` is the rest of the sentence, up to the next mark. Either may be empty.
    """

    sources: tuple[int, ...]
    before: Span
    behind: Span


def marks_of(text: str) -> list[CitationMark]:
    """Return the marks of an answer in their order. Marks side by side count as one."""
    groups = list(_groups(text))
    # Marks are blanked out, so that a mark belongs to the sentence before it.
    masked = CITATION.sub(lambda mark: " " * len(mark[0]), text)
    inside = document_sentences(masked, 0, len(masked), wrapped=False, language=foreign(text) or ENGLISH)
    borders = _borders(inside, len(text))
    marks: list[CitationMark] = []
    for before, (start, end), behind in zip([None, *groups], groups, [*groups[1:], None], strict=False):
        first, last = _sentence(borders, start)
        begin = max(first, before[1] if before else 0)
        own = stripped(masked, begin, start, _OPENERS)
        if own[0] == own[1] and marks and before and before[1] > first:
            own = marks[-1].before
        until = last if behind is None or behind[0] >= last else end
        sources = tuple(cited_sources(text[start:end]))
        marks.append(CitationMark(sources, own, stripped(masked, end, max(until, end), _OPENERS)))
    return marks


def _groups(text: str) -> Iterator[Span]:
    start = end = -1
    for mark in CITATION.finditer(text):
        if start >= 0 and not _BETWEEN.match(text, end, mark.start()):
            yield start, end
            start = -1
        start, end = (mark.start() if start < 0 else start), mark.end()
    if start >= 0:
        yield start, end


def _borders(inside: Sequence[Span], length: int) -> list[int]:
    """Return where sentences begin. Blank space between two sentences belongs to the first."""
    return [0, *(first for first, _ in inside[1:]), length]


def _sentence(borders: Sequence[int], at: int) -> Span:
    place = min(bisect_right(borders, at), len(borders) - 1)
    return borders[place - 1], borders[place]
