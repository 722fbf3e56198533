"""Citations: each mark of an answer with the passage of the document that should support its claim."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from rag_harness.core.text.language_detection import foreign
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.sentences import Span, sentence_spans, stripped
from rag_harness.core.text.terms import CITATION, cited_sources, terms
from rag_harness.core.types import UNMARKED, Chunk, Document, Hit

_LINE = re.compile(r"[^\n]*\n?")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||```|~~~|[-*_]{3,}[ \t]*$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•>]|\d{1,3}[.)])[ \t]")


def document_sentences(text: str, start: int, end: int, *, wrapped: bool, language: str = ENGLISH) -> list[Span]:
    """Return where the sentences of ``text[start:end]`` stand, in their order, without blank space around them.

    A heading, an item of a list and a row of a table each have at least one sentence. If lines are ``wrapped``, a
    sentence may continue in the next line; otherwise it ends with its line.
    """
    blocks = _blocks(text, start, end, wrapped)
    return [span for block in blocks for span in sentence_spans(text, *block, language=language, wrapped=True)]


def _blocks(text: str, start: int, end: int, wrapped: bool) -> Iterator[Span]:
    """Yield the blocks of a text: lines that form one paragraph, and lines that stand alone."""
    begin = at = start
    while at < end:
        behind = min(_LINE.match(text, at, end).end(), end)  # type: ignore[union-attr]
        line = text[at:behind]
        alone = not wrapped or not line.strip() or bool(_ALONE.match(line))
        if (alone or _ITEM.match(line)) and begin < at:
            yield begin, at
            begin = at
        if alone:
            yield at, behind
            begin = behind
        at = behind
    if begin < end:
        yield begin, end


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


_ENOUGH = 0.5
"""The share of a claim's words that its source must have. With less, the mark may belong to the words after it."""


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
    has less than half of the words before the mark, and more of the words after it, the claim is the words after it.
    The claim of a source that is cited without a mark, for example by its chapter, is the whole answer.

    The quote is the passage of the source with most of the claim's words. If no passage has any of them, the quote is
    the whole chunk. If the document no longer has the chunk, the quote is empty, at 0.

    Args:
        answer_text: the answer as it is shown, with its marks.
        citations: the sources that count; marks of others are left out.
        context: the sources; the first is 1.
        document_of: gives the current document of an id; a LookupError means that it no longer exists.
        links: the experiment's link for each source; one that is neither an http(s) address nor a path is not used.
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
