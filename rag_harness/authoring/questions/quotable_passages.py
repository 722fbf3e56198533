"""Splits a document into sentences and table rows, each with its place, so that a quote is verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.retrieval.chunking.heading_sections import HeadingSection, MarkdownBlock, read_sections
from rag_harness.types import Document
from rag_harness.words.sentence_ends import sentence_spans

LONGEST_PASSAGE = 500
"""The most characters of a passage that is searched for facts. A longer one is no sentence."""

_REFERENCE = re.compile(r"!?\[([^\[\]]{0,300})\](?:\([^()\s]{0,500}(?:\s\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,300}\])")
_MARKS = re.compile(r"<(?!https?:)[^<>]{1,200}>|\{[^{}]{0,200}\}|\[\^[\w-]{1,40}\]|\(\d{1,2}\)!?$")
_EMPHASIS = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<![\w_])_(?=[^\W_])|(?<=[^\W_])_(?![\w_])")
_ITEM = re.compile(r"\s*(?:>\s?)*(?:(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?(?:>\s?)*")
_NUMBERED = re.compile(r"\s*\d{1,3}[.)] ")
_CELL = re.compile(r"(?<!\\)\|")
_SYNTAX = re.compile(r"!!!|\?\?\?|:::|===|---|^\s*#")


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """A sentence, a list item's sentence or a table row: ``document.text[start:end]`` is the quote.

    ``text`` is what a reader sees. For a row, ``names`` and ``cells`` are the header and the row, equally long.
    ``section`` are the headings above it, outermost first; ``item`` says whether it begins an item of a list.
    """

    start: int
    end: int
    text: str
    section: tuple[str, ...]
    item: bool = False
    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


def seen(markup: str) -> str:
    """Return what a reader sees of a line of Markdown: no link targets, emphasis, code marks, tags or attributes."""
    text = _REFERENCE.sub(r"\1", _REFERENCE.sub(r"\1", markup))
    text = _EMPHASIS.sub("", _MARKS.sub("", text.replace("`", "")).replace("\\", ""))
    return " ".join(text.split())


def passages(document: Document, sections: Sequence[HeadingSection] | None = None) -> Iterator[QuotablePassage]:
    """Yield the passages of a document in their order. Code and HTML are left out."""
    for section in read_sections(document.text) if sections is None else sections:
        path = tuple(map(seen, section.path))
        after_code = False
        for block in section.blocks:
            explains = after_code and _NUMBERED.match(document.text, block.start) is not None
            after_code = block.code or explains
            if explains:
                continue  # notes with numbers of code lines mean nothing without the code
            if block.header is not None:
                yield from _row(document.text, block, path)
            elif not block.code:
                yield from _sentences(document, block, path)


def _sentences(document: Document, block: MarkdownBlock, path: tuple[str, ...]) -> Iterator[QuotablePassage]:
    raw = document.text[block.start : block.end].rstrip()
    mark = _ITEM.match(raw)
    first = mark.end() if mark else 0
    if _SYNTAX.match(raw):
        return
    for number, (start, end) in enumerate(sentence_spans(raw, first, language=document.language, wrapped=True)):
        quote = raw[start:end]
        if len(quote) <= 2 * LONGEST_PASSAGE:
            is_item = number == 0 and bool(raw[:first].strip("> \t\n"))
            at = block.start + start
            yield QuotablePassage(at, at + len(quote), seen(quote), path, is_item)


def _row(text: str, block: MarkdownBlock, path: tuple[str, ...]) -> Iterator[QuotablePassage]:
    header = block.header
    if header is None:
        return
    names = _cells(text[header.start : header.end].split("\n", 1)[0])
    start = max(block.start, header.end) if block.start <= header.start else block.start
    quote = text[start : block.end].strip()
    cells = _cells(quote)
    if quote and "\n" not in quote and len(cells) == len(names) > 1 and len(quote) <= 2 * LONGEST_PASSAGE:
        at = text.index(quote, start)
        yield QuotablePassage(at, at + len(quote), " | ".join(cells), path, names=names, cells=cells)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(seen(cell.replace("\\|", "|")) for cell in _CELL.split(inner))
