"""Packing of sections into chunks within the limit, balanced and with overlap, and the place of each chunk."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Any

from rag_harness.core.errors import ChunkTooLongError
from rag_harness.core.protocols import Tokenizer
from rag_harness.core.text.comparison import numbered
from rag_harness.core.types import Chunk, Document
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.markdown import (
    NEWLINE,
    Header,
    Heading,
    HeadingSection,
    MarkdownBlock,
    body_start,
    read_headings,
)

_LINE_END = re.compile(r"(?:\r\n?|\n)(?:[ \t]*(?:\r\n?|\n))*")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_]*\s+|[。！？][”’」』）]*\s*")
_WORD = re.compile(r"\S+\s*")
_PROSE = (_SENTENCE_END, _LINE_END)
_ROWS = (_LINE_END, _SENTENCE_END)


def parts(text: str, start: int, end: int, width: int, *, by_line: bool) -> list[tuple[int, int]]:
    """Cut ``text[start:end]`` at its best kind of border. Each part keeps the white space after it.

    Words are grouped, and characters are cut, to about ``width`` characters. The parts cover the whole. There are at
    least two parts, unless there is only one character.
    """
    for pattern in _ROWS if by_line else _PROSE:
        borders = [match.end() for match in pattern.finditer(text, start, end) if match.end() < end]
        if borders:
            return list(pairwise([start, *borders, end]))
    borders = list(_words(text, start, end, width)) or list(range(start, end, min(width, (end - start + 1) // 2)))[1:]
    return list(pairwise([start, *borders, end]))


def _words(text: str, start: int, end: int, width: int) -> Iterator[int]:
    behind = start
    for word in _WORD.finditer(text, start, end):
        if behind > start and word.end() - start > width:
            yield behind
            start = behind
        behind = word.end()


# Lengths are in tokens.


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one chunk: ``repeated_header``, then characters ``start`` to ``end`` of the page."""

    section: tuple[str, ...]
    start: int
    end: int
    repeated_header: str = ""


@dataclass(frozen=True, slots=True)
class _Atom:
    """A block, or a part of a block that is too long. ``room`` is the most tokens it may have.

    ``tokens`` does not count special tokens. A piece that starts here repeats ``header``.
    """

    section: int
    block: MarkdownBlock
    start: int
    end: int
    room: int
    tokens: int = 0
    header: Header | None = None


class Packer:
    """Cuts the sections of one page.

    Counts are batched. The sum of the blocks' counts is only an estimate, because a tokenizer may merge across
    borders. So each finished piece is counted, too, and cut again if it is too long.
    """

    def __init__(self, doc_id: str, text: str, tokenizer: Tokenizer, max_tokens: int, overlap: int) -> None:
        self._doc_id, self._text, self._tokenizer = doc_id, text, tokenizer
        self._max_tokens, self._overlap = max_tokens, overlap
        self._special = 0
        self._header_tokens: dict[Header, int] = {}

    def pieces(self, sections: Sequence[HeadingSection]) -> list[Piece]:
        """Return the pieces in the order of the page.

        Raises:
            ChunkTooLongError: a single character is over the limit.
        """
        if not sections:
            return []
        whole = [self._piece(section.path, section.start, section.end) for section in sections]
        self._special, *counts = self._tokenizer.count(["", *map(self._text_of, whole)])
        long = {number for number, count in enumerate(counts) if count > self._max_tokens}
        short = [piece for number, piece in enumerate(whole) if number not in long]
        return _without_contained([*short, *self._cut_sections(sections, sorted(long))])

    @property
    def _limit(self) -> int:
        return self._max_tokens - self._special

    def _cut_sections(self, sections: Sequence[HeadingSection], numbers: Sequence[int]) -> Iterator[Piece]:
        if numbers and self._limit < 1:
            raise ChunkTooLongError(
                f"{self._doc_id}: a chunk may have {self._max_tokens} tokens and the tokenizer adds {self._special} "
                f"special ones, so no text fits. Raise the chunk size."
            )
        self._count_headers(sections[number] for number in numbers)
        atoms = self._counted([atom for number in numbers for atom in self._atoms(number, sections)])
        atoms = self._fitted(self._beside_titles(atoms))
        packs = [
            pack
            for _, group in groupby(atoms, key=lambda atom: atom.section)
            for pack in self._packed(list(group), self._limit)
        ]
        return self._verified(packs, sections)

    def _count_headers(self, sections: Iterable[HeadingSection]) -> None:
        headers = sorted(
            {block.header for section in sections for block in section.blocks if block.header},
            key=lambda header: header.start,
        )
        tokens = self._tokens([(header.start, header.end) for header in headers])
        # A header of more than half the limit would leave too little room for rows.
        self._header_tokens = {
            header: count for header, count in zip(headers, tokens, strict=True) if count <= self._limit // 2
        }

    def _atoms(self, number: int, sections: Sequence[HeadingSection]) -> Iterator[_Atom]:
        section = sections[number]
        for block in (section.titles, *section.blocks):
            if block:
                yield self._with_header(_Atom(number, block, block.start, block.end, self._limit))

    def _with_header(self, atom: _Atom) -> _Atom:
        header = atom.block.header
        if header not in self._header_tokens or header is None or atom.start < header.end:
            return atom
        return replace(atom, header=header, room=self._limit - self._header_tokens[header])

    def _counted(self, atoms: Sequence[_Atom]) -> list[_Atom]:
        tokens = self._tokens([(atom.start, atom.end) for atom in atoms])
        return [replace(atom, tokens=count) for atom, count in zip(atoms, tokens, strict=True)]

    def _tokens(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        if not spans:
            return []
        return [count - self._special for count in self._tokenizer.count([self._text[s:e] for s, e in spans])]

    def _beside_titles(self, atoms: Sequence[_Atom]) -> list[_Atom]:
        # Less room for the block after a heading, so that both share a piece. Code has priority to stay whole.
        beside = list(atoms)
        for number, (title, atom) in enumerate(pairwise(atoms), start=1):
            if title.block.title and atom.section == title.section and title.tokens <= self._limit // 2:
                beside[number] = atom if atom.block.code else replace(atom, room=atom.room - title.tokens)
        return beside

    def _fitted(self, atoms: list[_Atom]) -> list[_Atom]:
        over = [atom for atom in atoms if atom.tokens > atom.room and atom.end - atom.start > 1]
        if not over:
            return atoms
        fitted = self._fitted(self._counted([part for atom in over for part in self._parts(atom)]))
        cut = {atom.start for atom in over}
        return sorted([*(atom for atom in atoms if atom.start not in cut), *fitted], key=lambda atom: atom.start)

    def _parts(self, atom: _Atom) -> Iterator[_Atom]:
        # Small compared with limit and overlap, so that pieces become full and the overlap is near its setting.
        grain = max(1, min(self._limit, 4 * self._overlap or self._limit) // 16)
        width = max(1, (atom.end - atom.start) * grain // max(1, atom.tokens))
        by_line = atom.block.code or atom.block.header is not None
        first, *rest = parts(self._text, atom.start, atom.end, width, by_line=by_line)
        yield replace(atom, end=first[1])
        for start, end in rest:
            yield self._with_header(replace(atom, start=start, end=end, room=self._limit, header=None))

    def _packed(self, atoms: Sequence[_Atom], limit: int) -> Iterator[Sequence[_Atom]]:
        sums = list(accumulate((atom.tokens for atom in atoms), initial=0))
        first = last = 0
        while last < len(atoms):
            room = sums[first] + limit - self._repeated(atoms[first])
            last = max(last + 1, bisect_right(sums, room) - 1)
            yield atoms[first:last]
            if last < len(atoms):
                first = self._next_first(atoms, sums, first, last, limit)

    def _next_first(self, atoms: Sequence[_Atom], sums: Sequence[int], first: int, last: int, limit: int) -> int:
        if not self._overlap:
            return last
        begin = bisect_left(sums, sums[last] - self._overlap, first + 1, last)
        # The repeated text must leave room for new text.
        while begin < last and sums[last + 1] - sums[begin] + self._repeated(atoms[begin]) > limit:
            begin += 1
        return begin

    def _repeated(self, atom: _Atom) -> int:
        return self._header_tokens[atom.header] if atom.header else 0

    def _verified(self, packs: Sequence[Sequence[_Atom]], sections: Sequence[HeadingSection]) -> Iterator[Piece]:
        while packs:
            pieces = [self._piece_of(pack, sections) for pack in packs]
            excesses = [count - self._max_tokens for count in self._tokenizer.count([*map(self._text_of, pieces)])]
            yield from (piece for piece, excess in zip(pieces, excesses, strict=True) if excess <= 0)
            over = [(pack, excess) for pack, excess in zip(packs, excesses, strict=True) if excess > 0]
            packs = [smaller for pack, excess in over for smaller in self._smaller(pack, excess)]

    def _smaller(self, pack: Sequence[_Atom], excess: int) -> Iterator[Sequence[_Atom]]:
        (only, *more) = pack
        limit = self._repeated(only) + sum(atom.tokens for atom in pack) - excess
        if more:
            return self._packed(pack, limit)
        if only.end - only.start > 1:
            return self._packed(self._counted(list(self._parts(only))), limit)
        if only.header:
            return iter([[replace(only, header=None)]])
        raise ChunkTooLongError(
            f"{self._doc_id}: the character {self._text[only.start]!r} at offset {only.start} alone has {excess} "
            f"tokens more than the {self._max_tokens} a chunk may have, and cannot be cut. Raise the chunk size."
        )

    def _piece_of(self, pack: Sequence[_Atom], sections: Sequence[HeadingSection]) -> Piece:
        first = pack[0]
        header = self._text[first.header.start : first.header.end] if first.header else ""
        return self._piece(sections[first.section].path, first.start, pack[-1].end, header)

    def _piece(self, path: tuple[str, ...], start: int, end: int, header: str = "") -> Piece:
        text = self._text[start:end]
        return Piece(path, end - len(text.lstrip()), start + len(text.rstrip()), header)

    def _text_of(self, piece: Piece) -> str:
        return piece.repeated_header + self._text[piece.start : piece.end]


def _without_contained(pieces: Iterable[Piece]) -> list[Piece]:
    # A piece that was cut again after counting may lie inside the next one's overlap.
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if piece.start < piece.end and (not kept or piece.end > kept[-1].end):
            kept.append(piece)
    return kept


# Balanced cutting of a section that is too long for a chunk: pieces of similar length, where possible.

_TRIES = 4


class Balancer:
    """Cuts sections of one page into pieces between ``least`` and ``max_tokens``."""

    def __init__(self, document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> None:
        self._document, self._tokenizer, self._settings = document, tokenizer, settings

    def pieces(self, section: HeadingSection) -> list[Piece]:
        """Return the pieces in the order of the page, each within ``max_tokens``.

        With full pieces, the last one has only the rest. If the rest is less than ``least``, lower limits are tried,
        down to equal pieces. A limit never cuts a block that fits. The cut whose shortest piece is longest is used.
        """
        full = self._cut(section, self._settings.max_tokens)
        if len(full) < 2 or self._shortest(full) >= self._settings.least:
            return full
        tried = [self._cut(section, limit) for limit in self._limits(section, len(full))]
        return max([full, *(pieces for pieces in tried if len(pieces) == len(full))], key=self._shortest)

    def _cut(self, section: HeadingSection, limit: int) -> list[Piece]:
        packer = Packer(self._document.doc_id, self._document.text, self._tokenizer, limit, self._settings.overlap)
        return packer.pieces([section])

    def _limits(self, section: HeadingSection, pieces: int) -> list[int]:
        most, overlap = self._settings.max_tokens, self._settings.overlap
        whole = self._tokenizer.count([self._document.text[section.start : section.end]])[0]
        even = (whole + overlap * (pieces - 1)) // pieces + 1
        lowest = max(even, overlap + 1, self._longest_whole(section))
        return sorted({lowest + (most - lowest) * step // _TRIES for step in range(_TRIES)}) if lowest < most else []

    def _longest_whole(self, section: HeadingSection) -> int:
        counts = self._tokenizer.count(list(self._wholes(section)))
        return max((count for count in counts if count <= self._settings.max_tokens), default=0)

    def _wholes(self, section: HeadingSection) -> Iterator[str]:
        """Yield the parts that a lower limit must not cut: blocks, headings with text, rows with a header, lines."""
        text, before = self._document.text, section.titles
        for block in section.blocks:
            yield text[before.start if before and before.title else block.start : block.end]
            if block.header and block.start >= block.header.end:
                yield text[block.header.start : block.header.end] + text[block.start : block.end]
            if block.code:
                yield from NEWLINE.split(text[block.start : block.end])
            before = block

    def _shortest(self, pieces: Sequence[Piece]) -> int:
        texts = [piece.repeated_header + self._document.text[piece.start : piece.end] for piece in pieces]
        return min(self._tokenizer.count(texts))


def one_section(sections: Sequence[HeadingSection], path: tuple[str, ...] = ()) -> HeadingSection:
    """Return all ``sections`` as one. Later headings become blocks that stay with their text."""
    first, *more = sections
    blocks = list(first.blocks)
    for section in more:
        blocks += [section.titles] if section.titles else []
        blocks += section.blocks
    return HeadingSection(path, first.titles, tuple(blocks))


_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(\S(?:.*\S)?)[ \t]*$", re.MULTILINE)
_QUOTED = re.compile(r"""(["'])(.*)\1""")
_COMMENT = re.compile(r"(?<!\s)\s+#.*$")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def front_matter(text: str) -> dict[str, str | int]:
    """Return the top-level keys with a plain value. Lists and nested values are left out.

    Quotes around a value and comments after it are removed, and whole numbers become numbers. Of a repeated key, the
    last value counts. A page without front matter gives nothing.
    """
    lines = text[: body_start(text)].replace("\r\n", "\n").replace("\r", "\n")
    return {match[1]: _value(match[2]) for match in _LINE.finditer(lines) if match[2][0] not in "[{|>#"}


def _value(written: str) -> str | int:
    quoted = _QUOTED.fullmatch(written)
    if quoted:
        return quoted[2]
    plain = _COMMENT.sub("", written)
    return int(plain) if _WHOLE_NUMBER.fullmatch(plain) else plain


INTRODUCTION = "Introduction"
"""The heading of the text before a page's first H2 or H3. The page need not have such a heading."""
DEEPEST_HEADING = 3
"""Deeper headings belong to the H2 or H3 above them."""


@dataclass(frozen=True, slots=True)
class HeadingPlace:
    """The introduction of a page (level 0), or a heading down to H3, with the text below it.

    ``start`` is an offset in the page. ``anchor`` is GitHub's anchor, empty without a heading.
    """

    start: int
    level: int
    heading: str
    anchor: str
    path: tuple[str, ...]


class HeadingPlaces:
    """The places of one page, in order. The first is its introduction."""

    def __init__(self, document: Document) -> None:
        self._document, self._front = document, front_matter(document.text)
        self._places = list(_places(document))
        self._starts = [place.start for place in self._places]

    def at(self, offset: int) -> HeadingPlace:
        """Return the place of the character at ``offset``."""
        return self._places[max(0, bisect_right(self._starts, offset) - 1)]

    def within(self, start: int, end: int) -> Sequence[HeadingPlace]:
        """Return the place at ``start`` and all that begin before ``end``."""
        first = max(0, bisect_right(self._starts, start) - 1)
        return self._places[first : max(first + 1, bisect_right(self._starts, end - 1))]

    def chunk(self, index: int, piece: Piece, place: HeadingPlace | None = None, path: Sequence[str] = ()) -> Chunk:
        """Return the chunk of ``piece`` at ``place``, by default the place of its first character.

        Its metadata has the page's metadata, ``heading``, ``anchor`` and ``section_ids`` (the anchors of all places in
        it); ``module``, ``module_title`` and ``chapter`` if the front matter names a module; ``url`` if it has one.
        """
        found = place or self.at(piece.start)
        held = [each.anchor for each in self.within(piece.start, piece.end) if each.anchor]
        return Chunk(
            chunk_id=f"{self._document.doc_id}#chunk_{index}",
            doc_id=self._document.doc_id,
            text=piece.repeated_header + self._document.text[piece.start : piece.end],
            start=piece.start,
            end=piece.end,
            section=tuple(path) or found.path,
            index=index,
            repeated_header=piece.repeated_header,
            metadata={**self._book(), **self._document.metadata, **self._address(found), "section_ids": held},
        )

    def _book(self) -> dict[str, Any]:
        # A chapter without its module is ambiguous: every module has a chapter 1.
        named = ("module", "module_title", "chapter") if "module" in self._front else ()
        return {key: self._front[key] for key in named if key in self._front}

    def _address(self, place: HeadingPlace) -> dict[str, Any]:
        page = self._front.get("url")
        address = f"{page}#{place.anchor}" if place.anchor else str(page)
        return {"heading": place.heading, "anchor": place.anchor, **({"url": address} if page else {})}


def _places(document: Document) -> Iterator[HeadingPlace]:
    headings = read_headings(document.text)
    anchors = numbered(heading.title for heading in headings)
    title = _page_title(headings)
    path = (title.title if title else document.title,)
    yield HeadingPlace(body_start(document.text), 0, INTRODUCTION, anchors[0] if title else "", path)
    for heading, anchor in zip(headings, anchors, strict=True):
        if heading.level <= DEEPEST_HEADING and heading is not title:
            yield HeadingPlace(heading.start, heading.level, heading.title, anchor, heading.path)


def _page_title(headings: Sequence[Heading]) -> Heading | None:
    return headings[0] if headings and headings[0].level == 1 and headings[0].title else None
