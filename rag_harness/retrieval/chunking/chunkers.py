"""Chunkers, registered under ``rag_harness.chunkers``.

Sections, headings, fixed, sliding, summaries, plain and whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise
from typing import Any

from rag_harness.core.protocols import Tokenizer
from rag_harness.core.text.sentences import sentence_spans
from rag_harness.core.types import UNMARKED, Chunk, Document
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.markdown import (
    NEWLINE,
    HeadingSection,
    MarkdownBlock,
    body_start,
    read_sections,
    references_of,
    unmarked,
)
from rag_harness.retrieval.chunking.packing import Balancer, HeadingPlace, HeadingPlaces, Packer, Piece, one_section

# ``sections``: a Markdown page is cut by headings, then by blocks. No chunk is longer than the embedder reads.


def chunk_sections(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one Markdown page into chunks, in the order of the page. A page without text gives none.

    Every non-blank character after the front matter is in at least one chunk. ``start`` and ``end`` count characters of
    ``document.text``.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    packer = Packer(document.doc_id, document.text, tokenizer, settings.max_tokens, settings.overlap)
    return [_chunk(document, index, piece) for index, piece in enumerate(packer.pieces(sections))]


def _chunk(document: Document, index: int, piece: Piece) -> Chunk:
    return Chunk(
        chunk_id=f"{document.doc_id}#chunk_{index}",
        doc_id=document.doc_id,
        text=piece.repeated_header + document.text[piece.start : piece.end],
        start=piece.start,
        end=piece.end,
        section=piece.section,
        index=index,
        repeated_header=piece.repeated_header,
        metadata=document.metadata,
    )


# ``headings``: a page by its H2 and H3, short sections joined, long ones split; for textbooks.
#
# - The text before the first H2 or H3 is a chunk of its own, however short, called "Introduction".
# - A section below ``least`` is joined with its neighbours under the same H2, forward first, while they fit.
# - Across H2s (and H1s), two sections are joined only where both are below ``least``. A short section between two long
#   ones stays short, because its neighbours are about something else.
# - A section over ``max_tokens`` is split between blocks, with overlap; see ``packing``.


@dataclass(frozen=True, slots=True)
class _Unit:
    """The text under one place, or under several joined places. ``h2`` is the offset of the H2 around it."""

    places: tuple[HeadingPlace, ...]
    h2: int
    section: HeadingSection
    tokens: int

    @property
    def is_introduction(self) -> bool:
        return self.places[0].level == 0


_May = Callable[[_Unit, _Unit], bool]


def chunk_headings(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page into chunks, in the order of the page. A page without text gives none.

    Every non-blank character after the front matter is in at least one chunk. A line of code or a table row that fits
    is never cut.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    places, joiner = HeadingPlaces(document), _Joiner(document, tokenizer, settings)
    balancer = Balancer(document, tokenizer, settings)
    cuts = [
        (unit, piece) for unit in joiner.joined(_units(document, places)) for piece in balancer.pieces(unit.section)
    ]
    return [places.chunk(index, piece, _opening(unit, places), _path(unit)) for index, (unit, piece) in enumerate(cuts)]


def _units(document: Document, places: HeadingPlaces) -> Iterator[_Unit]:
    def place_of(section: HeadingSection) -> HeadingPlace:
        # A heading without a body is joined to the next section, so that section's own heading is the last.
        return places.at(section.titles.end - 1 if section.titles else section.start)

    h2 = 0
    for place, sections in groupby(read_sections(document.text), key=place_of):
        section = one_section(list(sections))
        above = [each.start for each in places.within(section.start, place.start + 1) if each.level in (1, 2)]
        h2 = above[-1] if above else h2
        yield _Unit((place,), h2, section, 0)


def _opening(unit: _Unit, places: HeadingPlaces) -> HeadingPlace:
    """Return the place for a link to the unit: its own heading, or the first of the joined ones."""
    if len(unit.places) == 1:
        return unit.places[0]
    held = places.within(unit.section.start, unit.section.end)
    return next((place for place in held if place.level >= 2), unit.places[0])


def _path(unit: _Unit) -> tuple[str, ...]:
    shared = zip(*(place.path for place in unit.places), strict=False)
    same = [titles[0] if len(set(titles)) == 1 else None for titles in shared]
    return tuple(title for title in same[: [*same, None].index(None)] if title)


class _Joiner:
    def __init__(self, document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> None:
        self._text, self._tokenizer = document.text, tokenizer
        self._least, self._most = settings.least, settings.max_tokens

    def joined(self, units: Iterator[_Unit]) -> list[_Unit]:
        least = self._least
        counted = [self._unit(unit.places, unit.h2, [unit.section]) for unit in units]
        forward = self._pass(counted, lambda left, right: left.h2 == right.h2 and left.tokens < least)
        back = self._pass(forward, lambda left, right: left.h2 == right.h2 and right.tokens < least)
        return self._pass(back, lambda left, right: left.tokens < least and right.tokens < least)

    def _pass(self, units: Sequence[_Unit], may: _May) -> list[_Unit]:
        kept: list[_Unit] = []
        for unit in units:
            both = self._both(kept[-1], unit) if kept and may(kept[-1], unit) else None
            kept[len(kept) - bool(both) :] = [both or unit]
        return kept

    def _both(self, left: _Unit, right: _Unit) -> _Unit | None:
        if left.is_introduction or right.is_introduction:
            return None
        both = self._unit((*left.places, *right.places), left.h2, [left.section, right.section])
        return both if both.tokens <= self._most else None

    def _unit(self, places: tuple[HeadingPlace, ...], h2: int, sections: Sequence[HeadingSection]) -> _Unit:
        section = one_section(sections, places[0].path)
        text = self._text[section.start : section.end].strip()
        return _Unit(places, h2, section, self._tokenizer.count([text])[0])


# ``fixed``: chunks of as many words as fit, with overlap. Headings, paragraphs and sentences do not count.

_WORD = re.compile(r"\S+\s*")


def chunk_fixed(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page every ``max_tokens`` tokens, between words. Code and tables are cut between lines that fit.

    Each chunk repeats up to ``overlap`` tokens of the one before. A chunk's section is the section of its first
    character.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    if not sections:
        return []
    page = one_section(sections)
    words = tuple(word for block in _blocks(page) for word in _words(document.text, block))
    packer = Packer(document.doc_id, document.text, tokenizer, settings.max_tokens, settings.overlap)
    places = HeadingPlaces(document)
    return [places.chunk(index, piece) for index, piece in enumerate(packer.pieces([HeadingSection((), None, words)]))]


def _blocks(page: HeadingSection) -> Iterator[MarkdownBlock]:
    yield from (page.titles,) if page.titles else ()
    yield from page.blocks


def _words(text: str, block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    if block.code or block.header:
        ends = [*(match.end() for match in NEWLINE.finditer(text, block.start, block.end)), block.end]
        pairs = pairwise(dict.fromkeys([block.start, *ends]))
        yield from (MarkdownBlock(start, end, code=True) for start, end in pairs)
    else:
        yield from (MarkdownBlock(match.start(), match.end()) for match in _WORD.finditer(text, block.start, block.end))


# ``sliding``: long, overlapping chunks of a page's paragraphs. Headings do not count.


def chunk_sliding(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page at the borders of its blocks, into ``least`` to ``max_tokens``. A shorter page is one chunk.

    Each chunk repeats up to ``overlap`` tokens of the one before. A chunk's section is the section of its first
    character.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    if not sections:
        return []
    pieces = Balancer(document, tokenizer, settings).pieces(one_section(sections))
    places = HeadingPlaces(document)
    return [places.chunk(index, piece) for index, piece in enumerate(pieces)]


# ``summaries``: the sections of ``headings``, each as its headings and its first sentences.
#
# Summaries are extractive; no model writes them. A summary has the id of its section, so that a retriever can return
# the section.

SENTENCES = 3
"""Number of prose sentences in a summary."""

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_NO_PROSE = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|\|.*|[-*_]{3,}[ \t]*)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")


def chunk_summaries(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page into the summaries of its sections, in the order of the page; errors as in ``chunk_headings``."""
    return [replace(chunk, text=summary_of(chunk)) for chunk in chunk_headings(document, tokenizer, settings)]


def summary_of(chunk: Chunk) -> str:
    """Return the headings of a section and its first sentences of prose. Without prose: only its headings."""
    first = " ".join(islice(_sentences(chunk.text, chunk.language), SENTENCES))
    above = " > ".join(chunk.section)
    return f"{above}: {first}" if above and first else above or first or chunk.text


def _sentences(text: str, language: str) -> Iterator[str]:
    prose = _NO_PROSE.sub("\n", _FORMULA.sub(" ", _FENCE.sub("\n", text)))
    for paragraph in _PARAGRAPH.split(prose):
        for start, end in sentence_spans(paragraph, language=language, wrapped=True):
            yield " ".join(paragraph[start:end].split())


def chunk_plain(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page where ``sections`` cuts it, and return the words of each chunk; errors as in ``sections``.

    Ids and places are those of ``sections``: ``start`` and ``end`` are the place of the text with markup. A chunk of
    only markup keeps it. ``markup`` in the metadata says that markup was removed; a quote of the page is then searched
    for without markup, too.
    """
    chunks = chunk_sections(document, tokenizer, settings)
    code = [block for section in read_sections(document.text) for block in section.blocks if block.code]
    starts = [block.start for block in code]
    around = [code[max(0, bisect_left(starts, chunk.start) - 1)] if code else None for chunk in chunks]
    references = references_of(document.text[body_start(document.text) :])
    return [
        _plain(chunk, _opener(document.text, block, chunk.start), references)
        for chunk, block in zip(chunks, around, strict=True)
    ]


def _plain(chunk: Chunk, opener: str, references: dict[str, Any]) -> Chunk:
    text = unmarked(f"{opener}{chunk.text}", references).strip()
    own = {**chunk.metadata, "markup": UNMARKED}
    return replace(chunk, text=text or chunk.text, repeated_header="", metadata=own)


def _opener(text: str, before: MarkdownBlock | None, start: int) -> str:
    """Return the line that opens the fence around a chunk's beginning. Without it, code would be read as prose.

    ``before`` is the last code block that begins before ``start``, or the first of the page.
    """
    is_inside = before is not None and before.start < start < before.end
    first = NEWLINE.split(text[before.start : before.end].lstrip(), 1)[0] if before and is_inside else ""
    return f"{first}\n" if first.startswith(("```", "~~~")) else ""


# ``whole``: each document is one chunk of any length, for collections that are measured without chunking.


def chunk_whole(document: Document, _tokenizer: Tokenizer, _settings: ChunkingSettings) -> list[Chunk]:
    """Return the document as a single chunk."""
    whole = f"{document.doc_id}#whole"
    return [Chunk(whole, document.doc_id, document.text, 0, len(document.text), metadata=document.metadata)]


# Windows of a chunk that is longer than the embedder reads. It is not registered: its documents are chunks.


def chunk_window(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut a text into overlapping windows, at ends of sentences, else of lines. A text that fits is its only window.

    The last window has at least ``least`` tokens where possible, because a single sentence would score differently.
    Offsets count characters of ``document.text``.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    text = document.text
    balancer = Balancer(document, tokenizer, settings)
    pieces = balancer.pieces(HeadingSection((), None, (MarkdownBlock(0, len(text)),))) if text.strip() else []
    if len(pieces) < 2:
        return [Chunk(f"{document.doc_id}#0", document.doc_id, text, 0, len(text))]
    return [
        Chunk(f"{document.doc_id}#{number}", document.doc_id, text[piece.start : piece.end], piece.start, piece.end)
        for number, piece in enumerate(pieces)
    ]
