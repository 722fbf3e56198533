"""The chunks and pages that an experiment could have found, and the passages of them that it sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from statistics import median_high

from rag_harness.core.text.comparison import compared_words, with_single_blanks
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Chunk, Document
from rag_harness.evaluation.measures.correctness import plain_terms, share_within
from rag_harness.retrieval.retrievers import Rarity

_TAG, _WORDS, _ELLIPSIS = re.compile(r"</?[a-zA-Z][^<>]{0,200}>"), re.compile(r"\w+"), re.compile(r"…|\.\.\.")
_SAME_TEXT, LEAST_SAME = 0.8, 24
"""Least share of a text, from its beginning or its end, that must match; and the least number of characters."""
_OUTDATED = ("outdated", "superseded", "archived", "deprecated")


class CorpusView:
    """Chunks and pages, found by their text.

    Args:
        chunks: chunks of the experiment's index; None where they are not known.
        documents: pages of its data, also those that the index lacks.
    """

    def __init__(self, chunks: Sequence[Chunk] | None, documents: Sequence[Document] = ()) -> None:
        self.knows_index: bool = chunks is not None
        self.chunks: dict[str, Chunk] = {chunk.chunk_id: chunk for chunk in chunks or ()}
        self.documents: dict[str, Document] = {document.doc_id: document for document in documents}
        self._bare: dict[str, str] = {}

    @cached_property
    def rarity(self) -> Rarity:
        """The weights of words in the index."""
        return Rarity(self.chunks.values())

    def holding(self, quote: str) -> list[Chunk]:
        """Return the chunks that contain ``quote`` in one piece, white space folded."""
        wanted = with_single_blanks(quote)
        return [chunk for text, chunk in self._texts if wanted in text]

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
        """Return the paragraph of a page with ``quote`` in it; the quote alone where the page is missing."""
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

    @cached_property
    def _texts(self) -> Sequence[tuple[str, Chunk]]:
        return [(with_single_blanks(chunk.text), chunk) for chunk in self.chunks.values()]


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


def says(texts: Iterable[str], quote: str) -> bool:
    """Return whether one of ``texts`` contains ``quote`` in one piece."""
    wanted = with_single_blanks(quote)
    return any(wanted in with_single_blanks(text) for text in texts)


# Compares what was sent of a page with the page: another version of a passage, a part of it, another part. Pure.
#
# Nothing of the index has to be known for that: a pipeline that returns an answer and contexts has sent enough.

_LEAST_PIECE, _SAME_SHAPE = 2, 0.7
"""Least number of words of a piece, and least share of words, in their order, that two versions have in common."""
_ABOUT = 0.3
"""Least share of a quote's words in a piece about the same."""
_LONGEST = 80
"""Words of a piece that are compared."""
_LEAST_CUT, _LEAST_SHARE = 8, 0.15
"""Least number of characters, without blanks, of a part of a quote at the end of a chunk; and their share of it."""
_MOSTLY, _LAST_WORDS, _TITLE = 0.6, 6, 5
"""Share of chunks that is most of them; words of an end that are looked for in a page; most words of a mere title."""
_BORDER_SHOWN, _NEAR = 5, 0.1
"""Words shown on each side of a border; how far from their median lengths count as the same, as a share of it."""
_FIGURE = re.compile(r"\d+")
_ENDS = re.compile(r"[.!?:|。！？][\"'”’»)\]}*_`]*$")
_SHORTENED = re.compile(r"(?:…|\.\.\.)\s*$|^\s*(?:…|\.\.\.)")
_ITEM = re.compile(r"\s*(?:\||[-*+] |\d+[.)] )")
"""How a row of a table or an item of a list begins."""
_BEGINS_INSIDE = re.compile(r"^\s*[a-zà-ÿ,;.)%]")


def other_version(quote: str, chunks: Sequence[str], page: str, answer: str = "") -> str:
    """Return the piece of a chunk that replaces ``quote`` and that the page does not have; else empty.

    The piece has most of the words of the quote, in their order, figures aside. Or it has some of them, and a figure
    that is in the answer and not in the page.

    Args:
        quote: a passage of the page.
        chunks: texts that were sent as of this page.
        page: bare words of today's page; without them the result is empty.
        answer: what was answered.
    """
    if not page:
        return ""
    wanted = [shape for text in _pieces(quote) if len(shape := _shape(text)) >= _LEAST_PIECE]
    new = written_numbers(answer) - written_numbers(page)
    for piece in (piece for chunk in chunks for piece in _pieces(chunk)):
        shape = _shape(piece)
        if len(shape) < _LEAST_PIECE or bare(piece) in page:
            continue
        if any(_is_alike(shape, each) for each in wanted) or (new & written_numbers(piece) and _is_about(piece, quote)):
            return piece
    return ""


def _is_about(piece: str, quote: str) -> bool:
    return share_within(plain_terms(piece), plain_terms(quote)) >= _ABOUT


def _pieces(text: str) -> Iterator[str]:
    """Yield the sentences of each line; a row of a table is one."""
    for line in text.split("\n"):
        yield from (piece for piece in sentence_texts(line) if piece.strip())


def _shape(text: str) -> list[str]:
    """Return the bare words of a text with all figures alike: versions of a passage mostly differ in these."""
    return ["#" if _FIGURE.search(word) else word for word in bare(text).split()[:_LONGEST]]


def _is_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SAME_SHAPE


def is_cut_between(quote: str, chunks: Sequence[str], shortened: bool) -> bool:
    """Return whether a chunk border divides ``quote``: a chunk ends with its beginning, or begins with its end.

    Args:
        quote: a passage that no chunk has whole.
        chunks: texts that were sent as of its page.
        shortened: whether chunks are shortened on their way. Then one that ends with a beginning shows no border.
    """
    wanted, texts = "".join(quote.split()), ["".join(chunk.split()) for chunk in chunks]
    least = max(_LEAST_CUT, int(_LEAST_SHARE * len(wanted)))
    first = max((_overlap(text, wanted) for text in texts), default=0)
    last = max((_overlap(wanted, text) for text in texts), default=0)
    if first and last and first + last >= len(wanted):
        return True
    return max(first, last) >= least and not shortened


def are_shortened(chunks: Sequence[tuple[str, str]]) -> bool:
    """Return whether chunks were shortened on their way: most stop inside a line of their page, and begin with one.

    Or most are no more than a title.
    A chunker that counts characters stops there too, but its chunks also begin there.

    Args:
        chunks: texts that were sent, each with the text of its page; empty where this is not known.
    """
    if any(_SHORTENED.search(text) for text, _ in chunks):
        return True
    titles = sum(_is_title(text) for text, _ in chunks)
    stopped = sum(stops_inside(text, page) for text, page in chunks)
    begun = sum(not _BEGINS_INSIDE.match(text) for text, _ in chunks)
    return bool(chunks) and max(titles, min(stopped, begun)) >= _MOSTLY * len(chunks)


def _is_title(text: str) -> bool:
    return len(text.split()) <= _TITLE and not _ENDS.search(text.rstrip()) and not _BEGINS_INSIDE.match(text)


def border_beside(quote: str, chunk: str, page: str) -> str:
    """Say that a chunk ends inside a sentence, list or table right before a passage, or begins so after it; else empty.

    Right before means in the same block, or inside the passage. A chunk that ends with a whole sentence has no such
    border.

    Args:
        quote: a passage of the page that the chunk does not have whole.
        chunk: a text that was sent as of the page.
        page: the text of the page.
    """
    passage, sent = _span(quote, page), _span(chunk, page)
    if passage is None or sent is None:
        return ""
    text = page[sent[0] : sent[1]]
    rest = page[sent[1] :]
    if sent[0] <= passage[0] and sent[1] < passage[1] and _is_border(text, rest, page[sent[1] : passage[0]]):
        ends, goes_on = text.split()[-_BORDER_SHOWN:], rest.split()[:_BORDER_SHOWN]
        return f"a chunk ends “…{' '.join(ends)}”, and the page goes on “{' '.join(goes_on)}…”"
    before = page[: sent[0]]
    if passage[0] < sent[0] and passage[1] <= sent[1] and _is_border(before, text, page[passage[1] : sent[0]]):
        return f"a chunk begins “{' '.join(text.split()[:_BORDER_SHOWN])}…”, after it in the page"
    return ""


def _span(text: str, page: str) -> tuple[int, int] | None:
    """Return the place of a text in a page, white space aside."""
    found = re.search(r"\s+".join(map(re.escape, text.split())), page) if text.strip() else None
    return found.span() if found else None


def _is_border(before: str, after: str, between: str) -> bool:
    """Return whether a sentence, list or table goes on from one text to the next, and no block ends between them."""
    if re.search(r"\n\s*\n", between) or re.match(r"[ \t]*\n\s*\n", after) or before.endswith("\n\n"):
        return False
    last_line = before.rstrip().rpartition("\n")[2]
    is_inside = not _ENDS.search(before.rstrip())
    return is_inside or bool(_ITEM.match(last_line) and _ITEM.match(after.lstrip()))


def are_of_one_length(texts: Sequence[str]) -> bool:
    """Return whether most texts have about the same number of characters, or of words, as shortened ones do."""
    for lengths in ([len(text) for text in texts], [len(text.split()) for text in texts]):
        middle = median_high(lengths) if lengths else 0
        if sum(abs(each - middle) <= _NEAR * middle for each in lengths) > len(lengths) / 2:
            return True
    return False


def stops_inside(chunk: str, page: str) -> bool:
    """Return whether a chunk stops inside a line of its page."""
    if _ENDS.search(chunk.rstrip()):
        return False
    words = [re.escape(word) for word in chunk.split()[-_LAST_WORDS:]]
    found = re.search(r"\s+".join(words) + r"[*_`]{0,3}[ \t]*(\n|$)", page) if words else None
    return found is None
