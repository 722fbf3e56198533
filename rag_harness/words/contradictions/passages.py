"""Sentences and table rows of a text, with their places and the headings above them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rag_harness.words.contradictions.vocabulary import term, tokens
from rag_harness.words.sentence_ends import Span, sentence_spans

SpanGroup = tuple[str, list[Span]]

_HIDDEN = re.compile(
    # Code, comments, targets of links, citations, emphasis, formulas.
    r"^(```|~~~)[^\n]*$(?:\n(?!\1)[^\n]*)*(?:\n\1[^\n]*)?|<!--[^<>]{0,1000}-->"
    r"|(?<=\])\([^()\s]{0,500}\)|\[(?:source )?[0-9]{1,3}\b[^\]\n\[]{0,200}\](?!\()|[*_`\[\]]"
    r"|\$[^$\n=\\^_{]{0,80}[=\\^_{][^$\n]{0,120}\$",
    re.M | re.I,
)
_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+")
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence or a table row. Of a row, ``cells`` are its cells and ``header`` those of the first row; else empty.

    ``above`` are the terms of its headings and of the line that introduces it.
    """

    start: int
    end: int
    above: frozenset[str]
    cells: tuple[Span, ...] = ()
    header: tuple[Span, ...] = ()


def without_markup(text: str) -> str:
    """Return a text of the same length, with markup, code, formulas, comments and citations blanked."""
    return _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)


def passages(text: str) -> Iterator[Passage]:
    """Return the sentences and rows of ``without_markup`` text, in order."""
    headings: dict[int, frozenset[str]] = {}
    lead: frozenset[str] = frozenset()
    for kind, lines in _blocks(text):
        start, end = lines[0][0], lines[-1][1]
        if kind == "heading":
            headings, lead = _nested(headings, text, lines[0]), frozenset()
        elif kind == "table":
            yield from _rows(text, lines, frozenset(lead.union(*headings.values())))
        else:
            item = _ITEM.match(text, start, end)
            spans = list(sentence_spans(text, item.end() if item else start, end, wrapped=True, clauses=True))
            above = frozenset(lead.union(*headings.values()))
            yield from (Passage(*span, above) for span in spans)
            lead = lead if kind == "item" else _lead(text, spans)


def _nested(headings: dict[int, frozenset[str]], text: str, line: Span) -> dict[int, frozenset[str]]:
    marks = _HEADING.match(text, *line)
    level = len(marks[1]) if marks else 6
    return {above: said for above, said in headings.items() if above < level} | {level: terms_of(text, *line)}


def _lead(text: str, spans: list[Span]) -> frozenset[str]:
    return terms_of(text, *spans[-1]) if spans and text[slice(*spans[-1])].rstrip().endswith(":") else frozenset()


def terms_of(text: str, start: int, end: int) -> frozenset[str]:
    """Return the terms of a piece of text."""
    return frozenset(filter(None, (term(token.lower) for token in tokens(text, start, end))))


def _blocks(text: str) -> Iterator[SpanGroup]:
    """Group lines into headings, tables, list items and paragraphs."""
    kind, lines, stopped = "", list[Span](), 0
    for line in _LINE.finditer(text):
        new = _kind(text, line)
        apart = text.count("\n", stopped, line.start()) > 1
        joins = not apart and ((new == kind == "table") or (new == "text" and kind in {"text", "item"}))
        if not joins and lines:
            yield kind, lines
            lines = []
        kind = kind if joins else new
        if new:
            lines.append(line.span())
        stopped = line.end()
    if lines:
        yield kind, lines


def _kind(text: str, line: re.Match[str]) -> str:
    stripped = line[0].lstrip()
    if not stripped:
        return ""
    if stripped.startswith("|"):
        return "table"
    if _HEADING.match(text, *line.span()):
        return "heading"
    return "item" if _ITEM.match(text, *line.span()) else "text"


def _rows(text: str, lines: list[Span], above: frozenset[str]) -> Iterator[Passage]:
    rule = text[slice(*lines[1])] if len(lines) > 2 else ""
    if "-" not in rule or rule.strip("|:- \t"):
        return
    header = _cells(text, *lines[0])
    for line in lines[2:]:
        cells = _cells(text, *line)
        if len(cells) == len(header) > 1:
            yield Passage(*line, above, cells, header)


def _cells(text: str, start: int, end: int) -> tuple[Span, ...]:
    bars = [bar.start() for bar in _BAR.finditer(text, start, end)]
    return tuple((left + 1, right) for left, right in pairwise(bars))
