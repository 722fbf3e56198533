"""Balanced cutting of a section that is too long for a chunk: pieces of similar length, where possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.heading_sections import NEWLINE, HeadingSection
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.retrieval.chunking.packing import Packer, Piece
from rag_harness.types import Document

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
