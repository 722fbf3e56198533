"""Borders for cutting a block that is too long for a chunk: sentences, lines, words, and at last characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

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
