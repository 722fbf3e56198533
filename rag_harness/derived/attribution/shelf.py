"""The chunks and pages that an experiment could have found, and which pages are outdated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from rag_harness.retrieval.rarity import Rarity
from rag_harness.types import Chunk, Document
from rag_harness.words.comparison import compared_words

_TAG, _WORDS, _ELLIPSIS = re.compile(r"</?[a-zA-Z][^<>]{0,200}>"), re.compile(r"\w+"), re.compile(r"…|\.\.\.")
_SAME_TEXT, LEAST_SAME = 0.8, 24
"""Least share of a text, from its beginning or its end, that must match; and the least number of characters."""
_OUTDATED = ("outdated", "superseded", "archived", "deprecated")


class Shelf:
    """Chunks and pages, found by their text.

    Args:
        chunks: chunks of the experiment's index; None where they are not known.
        documents: pages of its data, also those that the index lacks.
    """

    def __init__(self, chunks: Sequence[Chunk] | None, documents: Sequence[Document] = ()) -> None:
        self.knows_index: bool = chunks is not None
        self.chunks: dict[str, Chunk] = {chunk.chunk_id: chunk for chunk in chunks or ()}
        self.documents: dict[str, Document] = {document.doc_id: document for document in documents}
        self._folded: dict[str, str] = {}
        self._bare: dict[str, str] = {}

    @cached_property
    def rarity(self) -> Rarity:
        """The weights of words in the index."""
        return Rarity(self.chunks.values())

    def holding(self, quote: str) -> list[Chunk]:
        """Return the chunks that contain ``quote`` in one piece, white space folded."""
        wanted = with_single_blanks(quote)
        return [chunk for chunk in self.chunks.values() if wanted in self._text(chunk)]

    def of_page(self, doc_id: str) -> list[Chunk]:
        """Return the chunks of a page, in its order; none where it is not in the index."""
        return sorted(self._by_page.get(doc_id, ()), key=lambda chunk: chunk.index)

    def pieces(self, doc_id: str, quote: str) -> list[Chunk]:
        """Return the chunks of a page that each contain a part of ``quote``, where no chunk contains all of it."""
        span = self._span(doc_id, quote)
        return [chunk for chunk in self.of_page(doc_id) if span and chunk.start < span[1] and span[0] < chunk.end]

    def is_cut(self, doc_id: str, quote: str) -> bool:
        """Return whether a chunk border divides ``quote``: its parts are at the ends of the page's chunks.

        Otherwise no chunk contains a part of it: the chunks may be shorter than their source.
        """
        wanted = "".join(quote.split())
        texts = ["".join(chunk.text.split()) for chunk in self.of_page(doc_id)]
        first = max((_overlap(text, wanted) for text in texts), default=0)
        last = max((_overlap(wanted, text) for text in texts), default=0)
        inside = sum(len(text) for text in set(texts) if text in wanted)
        return bool(first and last) and first + last + inside >= len(wanted)

    def ends_before(self, doc_id: str, quote: str) -> bool:
        """Return whether ``quote`` comes after everything that the index has of its page."""
        span = self._span(doc_id, quote)
        last = max((chunk.end for chunk in self.of_page(doc_id)), default=0)
        return span is not None and 0 < last <= span[0]

    def passage(self, doc_id: str, quote: str) -> str:
        """Return the paragraph of a page with ``quote`` in it; the quote alone where there is no such page."""
        span = self._span(doc_id, quote)
        if span is None:
            return quote
        text = self.documents[doc_id].text
        start, end = text.rfind("\n\n", 0, span[0]), text.find("\n\n", span[1])
        return text[max(0, start) : end if end >= 0 else len(text)].strip()

    def page_text(self, doc_id: str) -> str:
        """Return all that is known of a page's text."""
        if doc_id in self.documents:
            return self.documents[doc_id].text
        return "\n".join(chunk.text for chunk in self.of_page(doc_id))

    def bare_page(self, doc_id: str) -> str:
        """Return the bare words of a page's text; each page is read only once for that."""
        if doc_id not in self._bare:
            self._bare[doc_id] = bare(self.page_text(doc_id))
        return self._bare[doc_id]

    @cached_property
    def superseded(self) -> Mapping[str, str]:
        """Each outdated page, with the page that replaced it; empty where none is named."""
        pages = self._metadata
        names = {str(meta.get("id") or doc_id.rpartition(".")[0]): doc_id for doc_id, meta in pages.items()}
        names |= {doc_id: doc_id for doc_id in pages}
        found = {doc_id: "" for doc_id, meta in pages.items() if str(meta.get("status", "")).lower() in _OUTDATED}
        for doc_id, meta in pages.items():
            old = names.get(str(meta.get("supersedes") or ""))
            if old:
                found[old] = doc_id
        return found

    @cached_property
    def _metadata(self) -> Mapping[str, Mapping[str, object]]:
        from_chunks = {chunk.doc_id: chunk.metadata for chunk in self.chunks.values()}
        return from_chunks | {doc_id: document.metadata for doc_id, document in self.documents.items()}

    @cached_property
    def _by_page(self) -> Mapping[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self.chunks.values():
            found.setdefault(chunk.doc_id, []).append(chunk)
        return found

    def _span(self, doc_id: str, quote: str) -> tuple[int, int] | None:
        document = self.documents.get(doc_id)
        pattern = r"\s+".join(map(re.escape, quote.split()))
        found = re.search(pattern, document.text) if document and pattern else None
        return found.span() if found else None

    def _text(self, chunk: Chunk) -> str:
        if chunk.chunk_id not in self._folded:
            self._folded[chunk.chunk_id] = with_single_blanks(chunk.text)
        return self._folded[chunk.chunk_id]


def _overlap(first: str, second: str) -> int:
    """Return how many characters the end of ``first`` shares with the beginning of ``second``."""
    return next((n for n in range(min(len(first), len(second)), 0, -1) if first.endswith(second[:n])), 0)


def bare(text: str) -> str:
    """Return the bare words of ``text``: without tags, marks, case and white space."""
    return " ".join(compared_words(_TAG.sub(" ", text)))


def is_part_of(text: str, whole: str, least: int = LEAST_SAME) -> bool:
    """Return whether a text, or the text between its ellipses, is a part of ``whole``, which is bare.

    A service may remove marks, or add some at an end: most of the characters are enough. Short texts are a part of
    many, so there must be at least ``least`` characters.
    """
    for piece in map(bare, _ELLIPSIS.split(text)):
        most = int(len(piece) * _SAME_TEXT)
        if most >= least and (piece[:most] in whole or piece[len(piece) - most :] in whole):
            return True
    return False


def with_single_blanks(text: str) -> str:
    """Return ``text`` with runs of white space as one blank."""
    return " ".join(text.split())


def says(texts: Iterable[str], quote: str) -> bool:
    """Return whether one of ``texts`` contains ``quote`` in one piece."""
    wanted = with_single_blanks(quote)
    return any(wanted in with_single_blanks(text) for text in texts)
