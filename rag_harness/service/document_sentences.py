"""The sentences, items and rows of a document that the service shows behind a claim: of Markdown as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.words.languages import ENGLISH
from rag_harness.words.sentence_ends import Span, sentence_spans

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
