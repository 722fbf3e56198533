"""Citations: each mark of an answer with the passage of the document that should support it, verbatim."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from rag_harness.service.claim_passages import ClaimPassages, chunk_span
from rag_harness.service.claims import CitationMark, marks_of
from rag_harness.types import Chunk, Document, Hit
from rag_harness.words.sentence_ends import Span, stripped
from rag_harness.words.terms import terms

_ENOUGH = 0.5
"""The share of a claim's words that its source must have. With less, the mark may stand for the words after it."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One source of one claim. Offsets count characters; ``document.text[start:end] == quote``, always.

    Attributes:
        answer_start: start of the claim in the answer's text.
        answer_end: end of the claim, before its mark.
        source: the number of the source in the prompt, from 1.
        document: id of the document.
        section: headings above the cited chunk, outermost first, with " > " between them.
        page: page on which the quote begins, from 1; None if the document has no pages.
        url: the link that the experiment made for the source; else the document's http(s) address from its metadata,
            None if they have none. A path, ``/module-1#topics``, is one on the site that shows the documents.
        quote: one to three neighbouring sentences or rows, as they are written in the document.
        start: start of the quote in the document's text.
        end: end of the quote.
    """

    answer_start: int
    answer_end: int
    source: int
    document: str
    section: str
    page: int | None
    url: str | None
    quote: str
    start: int
    end: int


def cited(
    answer_text: str,
    citations: Collection[int],
    context: Sequence[Hit],
    document_of: Callable[[str], Document],
    links: Mapping[int, str] = MappingProxyType({}),
) -> tuple[Citation, ...]:
    """Return the citations of an answer, in its order: one for each source that a ``[Source n]`` names.

    The claim is the part of the mark's sentence before the mark, from the last mark on. If the mark follows the end of
    the sentence, the claim is the sentence. A mark may also come first ("According to [Source 1], …"): if the source
    has less than half of the words before the mark, and more of the words after it, the claim is the words after it. A
    source that is cited without a mark, for example by its chapter, stands for the whole answer.

    The quote is the passage of the source with most of the claim's words. If no passage has any of them, the quote is
    the whole chunk. If the document no longer has the chunk, the quote is empty, at 0.

    Args:
        answer_text: the answer as it is shown, with its marks.
        citations: the sources that count; marks of others are left out.
        context: the sources; the first is 1.
        document_of: gives the current document of an id; a LookupError means that it no longer exists.
        links: the experiment's link for each source; one that is no http(s) address and no path is not used.
    """
    sources = _Sources(context, document_of, links)
    valid = {n for n in citations if 1 <= n <= len(context)}
    marks = [mark for mark in marks_of(answer_text) if valid.intersection(mark.sources)]
    unmarked = [n for n in dict.fromkeys(citations) if n in valid and not any(n in mark.sources for mark in marks)]
    by_marks = [sources.citation(n, answer_text, mark) for mark in marks for n in mark.sources if n in valid]
    whole = stripped(answer_text, 0, len(answer_text))
    return (*by_marks, *(sources.citation(n, answer_text, CitationMark((n,), whole, (0, 0))) for n in unmarked))


class _Sources:
    """The sources of one answer. Each document is looked up once, and each chunk is read once."""

    def __init__(
        self, context: Sequence[Hit], document_of: Callable[[str], Document], links: Mapping[int, str]
    ) -> None:
        self._context, self._document_of, self._links = context, document_of, links
        self._read: dict[int, tuple[Document | None, ClaimPassages | None]] = {}
        self._words: dict[tuple[Span, str], frozenset[str]] = {}
        self._best: dict[tuple[int, Span], Span] = {}

    def citation(self, n: int, answer: str, mark: CitationMark) -> Citation:
        chunk = self._context[n - 1].chunk
        document, passages = self._source(n)
        known, language = (passages.words, passages.language) if passages else (frozenset[str](), chunk.language)
        claim = self._claim(answer, mark, known, language)
        # Thousands of marks may share one long claim. Its passage is looked for only once.
        if (n, claim) not in self._best:
            self._best[n, claim] = passages.best(answer[slice(*claim)]) if passages else (0, 0)
        start, end = self._best[n, claim]
        quote = document.text[start:end] if document else ""
        page = page_of(document, start) if document and quote else None
        url = self._url(n, document) if document else None
        return Citation(*claim, n, chunk.doc_id, section_of(chunk), page, url, quote, start, end)

    def _url(self, n: int, document: Document) -> str | None:
        link = self._links.get(n, "").strip()
        return link if _is_web(link) or _is_path(link) else url_of(document)

    def _claim(self, answer: str, mark: CitationMark, known: frozenset[str], language: str) -> Span:
        if mark.before[0] == mark.before[1]:
            return mark.behind
        spans = (mark.before, mark.behind)
        before, behind = (_share(self._terms(answer, span, language), known) for span in spans)
        return mark.behind if before < _ENOUGH and behind > before else mark.before

    def _terms(self, answer: str, span: Span, language: str) -> frozenset[str]:
        if (span, language) not in self._words:
            self._words[span, language] = terms(answer[slice(*span)], language)
        return self._words[span, language]

    def _source(self, n: int) -> tuple[Document | None, ClaimPassages | None]:
        if n not in self._read:
            self._read[n] = self._opened(n)
        return self._read[n]

    def _opened(self, n: int) -> tuple[Document | None, ClaimPassages | None]:
        chunk = self._context[n - 1].chunk
        try:
            document = self._document_of(chunk.doc_id)
        except LookupError:
            return None, None
        place = chunk_span(chunk, document)
        return document, ClaimPassages(document.text, place, document.language) if place else None


def _share(words: frozenset[str], known: frozenset[str]) -> float:
    return len(words & known) / len(words) if words else 0.0


def section_of(chunk: Chunk) -> str:
    """Return the headings above a chunk, outermost first, in one line."""
    return " > ".join(chunk.section)


def page_of(document: Document, start: int) -> int | None:
    """Return the page, from 1, of the character at ``start``; None if the document has no pages."""
    return max(1, bisect_right(document.pages, start)) if document.pages else None


def url_of(document: Document) -> str | None:
    """Return the http(s) address in ``url`` or ``source`` of a document's metadata; None if there is none.

    An address in the text of a document is not used: anybody may have written it.
    """
    return next(filter(_is_web, _named(document)), None)


def _named(document: Document) -> Iterator[str]:
    found = (document.metadata.get(key) for key in ("url", "source"))
    yield from (value.strip() for value in found if isinstance(value, str))


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and address.isprintable() and " " not in address


def _is_path(address: str) -> bool:
    """Whether an address is a path from the root of a site. ``//host`` and ``/\\host`` would be other sites."""
    begins = address.startswith("/") and not address.startswith("//")
    return begins and "\\" not in address and address.isprintable() and " " not in address
