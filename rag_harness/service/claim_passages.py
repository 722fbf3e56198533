"""Finds the few sentences of a chunk that support a claim, by their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rag_harness.service.document_sentences import document_sentences
from rag_harness.types import UNMARKED, Chunk, Document
from rag_harness.words.languages import ENGLISH
from rag_harness.words.sentence_ends import Span
from rag_harness.words.terms import terms

_MOST = 3
"""The most sentences of a passage."""
_WORTH = 0.2
"""The share of a claim's words that each further sentence must add."""
_ALIKE = 0.5
"""The share of a chunk's words that must be at its stated place in the document. Otherwise it is not from there."""


def chunk_span(chunk: Chunk, document: Document) -> Span | None:
    """Return the place of the chunk's text in ``document.text``; None if the document no longer has it.

    The chunk's text may differ from the page's, for example without markup. Then its own stated place is returned.
    """
    text, (start, end) = document.text, (chunk.start, chunk.end)
    own = chunk.text.removeprefix(chunk.repeated_header)
    if 0 <= start < end <= len(text) and (text[start:end] == own or _is_of(chunk, text[start:end])):
        return start, end
    found = text.find(own) if own.strip() else -1
    return (found, found + len(own)) if found >= 0 else None


def _is_of(chunk: Chunk, piece: str) -> bool:
    words = terms(chunk.text, chunk.language)
    return len(words & terms(piece, chunk.language)) >= _ALIKE * len(words) and bool(
        words or chunk.metadata.get("markup") == UNMARKED
    )


class ClaimPassages:
    """The sentences of one stretch of a document, each with its words. ``language`` is the document's."""

    def __init__(self, text: str, place: Span, language: str = ENGLISH) -> None:
        self.place, self.language = place, language
        self._sentences = list(
            _worded(text, document_sentences(text, *place, wrapped=True, language=language), language)
        )
        self.words = frozenset().union(*(words for _, words in self._sentences))

    def best(self, claim: str) -> Span:
        """Return the one to three adjacent sentences with most of the claim's words, and among equals the shortest.

        If no sentence has any of the words, return the whole stretch.
        """
        _, found = max(self._windows(terms(claim, self.language)), default=(None, self.place))
        return found

    def _windows(self, wanted: frozenset[str]) -> Iterator[tuple[tuple[float, int, int], Span]]:
        """Yield each passage with a word of ``wanted`` and its rank: most words first, then shortest, then earliest."""
        for first, ((start, _), _) in enumerate(self._sentences):
            held: set[str] = set()
            for more, ((_, end), words) in enumerate(self._sentences[first : first + _MOST]):
                held |= words & wanted
                if held:
                    share = len(held) / len(wanted)
                    yield (round(share - _WORTH * more, 9), start - end, -start), (start, end)


def _worded(text: str, spans: Iterable[Span], language: str) -> Iterator[tuple[Span, frozenset[str]]]:
    """Yield the sentences that have words, with their words. A row of a table also has the words of its header."""
    header, before = frozenset[str](), frozenset[str]()
    for start, end in spans:
        piece = text[start:end]
        if not piece.startswith("|"):
            header = frozenset()
        elif not piece.strip("|:- \t\r\n"):
            header = before
        before = terms(piece, language)
        if before:
            yield (start, end), before | header
