"""Packing of sections into pieces within the limit: whole sections where they fit, else blocks with overlap.

Lengths are in tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise

from rag_harness.errors import ChunkTooLongError
from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.borders import parts
from rag_harness.retrieval.chunking.heading_sections import Header, HeadingSection, MarkdownBlock


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
