"""A text as statements: sentences and cells of tables with their place, terms, figures, conditions and denials."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rag_harness.pipelines.reliability.stated_figures import Figure, figures_of
from rag_harness.pipelines.reliability.vocabulary import OPENERS, Token, term, tokens

MOST_STATEMENTS = 4_000
"""Of one text; what comes after is not compared."""
LONGEST = 80
"""Tokens of a statement; what comes after them in the sentence is a statement of its own."""
MOST_CELLS = 12

_HIDDEN = re.compile(
    r"^(```|~~~)[^\n]*$(?:\n(?!\1)[^\n]*)*(?:\n\1[^\n]*)?|<!--[^<>]{0,1000}-->"
    r"|(?<=\])\([^()\s]{0,500}\)|\[(?:source )?\d{1,3}\b[^\]\n\[]{0,200}\](?!\()|[*_`\[\]]"
    r"|\$[^$\n=\\^_{]{0,80}[=\\^_{][^$\n]{0,120}\$",
    re.M | re.I,
)
_BLOCK = re.compile(r"[^\n]+")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_END = re.compile(r"[.!?;]+[\"'”’)]*(?=\s|$)")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min|a\.m|p\.m|etc)|\b\d{1,2})$", re.I)
_HISTORY = re.compile(
    r"\b(?:formerly|former|previously|previous|used to|earlier|older|in the past|back then|at that time|was replaced"
    r"|were replaced|superseded|obsolete|originally|once was|(?:until|before|till|up to) (?:the end of )?(?:[a-z]{3,9} )?"
    r"(?:19|20)\d\d|in (?:19|20)\d\d,)\b",
    re.I,
)
_EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g|say you|suppose|imagine|example)\b", re.I)
_HEDGE = frozenset("most mostly usually typically normally generally often average".split())
_NOT = frozenset("not never cannot neither".split())
_SOFTENS = frozenset("only just always all every necessarily yet more less later earlier fewer longer until before even".split())


@dataclass(frozen=True, slots=True)
class Denial:
    """What a clause denies: the terms behind its negation, and whether it merely lifts an obligation."""

    terms: tuple[str, ...]
    place: int
    lifts: bool
    always: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, or a cell of a table read with its row and column.

    Attributes:
        text: which of the texts.
        start, end: where it stands there.
        words: term of each token; "" for a mark, a function word and a figure.
        above: terms of headings, lead-in and what stands before a colon.
        clauses: the token behind each clause.
        conditions: the tokens of each condition.
    """

    text: int
    start: int
    end: int
    words: tuple[str, ...]
    above: frozenset[str]
    clauses: tuple[int, ...]
    conditions: frozenset[int]
    figures: tuple[Figure, ...]
    denials: tuple[Denial, ...]
    negates: bool
    history: bool
    hedged: bool
    restricts: bool
    obliges: bool
    row: frozenset[str] = field(default=frozenset())

    @property
    def terms(self) -> frozenset[str]:
        return frozenset(filter(None, self.words))

    @property
    def is_cell(self) -> bool:
        return bool(self.row)


def statements(text: str, number: int) -> list[Statement]:
    """Return the first MOST_STATEMENTS statements of a text; questions, examples and code state nothing."""
    found: list[Statement] = []
    for statement in _all(text, number):
        found.append(statement)
        if len(found) == MOST_STATEMENTS:
            break
    return found


def _all(text: str, number: int) -> Iterator[Statement]:
    shown = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)
    headings: dict[int, frozenset[str]] = {}
    lead: frozenset[str] = frozenset()
    for kind, lines in _blocks(shown):
        if kind == "heading":
            start, end = lines[0]
            marks = _HEADING.match(shown, start, end)
            level = len(marks[1]) if marks else 6
            headings = {above: terms for above, terms in headings.items() if above < level}
            headings[level] = frozenset(_terms(shown, start, end))
            lead = frozenset()
            continue
        above = frozenset().union(*headings.values(), lead)
        if kind == "table":
            yield from _cells(shown, lines, above, number)
            continue
        start, end = lines[0][0], lines[-1][1]
        for first, last in _sentences(shown, start, end):
            yield from _prose(shown, (first, last), above, number)
        if kind == "text":
            lead = frozenset(_terms(shown, *_last(shown, start, end))) if shown[start:end].rstrip().endswith(":") else frozenset()


def _blocks(text: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Group lines into headings, tables, items of lists and paragraphs."""
    kind, lines, stopped = "", list[tuple[int, int]](), 0
    for line in _BLOCK.finditer(text):
        new = _kind(text, line)
        gap = text.count("\n", stopped, line.start()) > 1
        joins = not gap and ((new == kind == "table") or (new == "text" and kind in {"text", "item"}))
        if not joins and lines:
            yield kind, lines
            lines = []
        kind = (kind if joins else new)
        if new:
            lines.append(line.span())
        stopped = line.end()
    if lines:
        yield kind, lines


def _kind(text: str, line: re.Match[str]) -> str:
    if not line[0].strip():
        return ""
    if line[0].lstrip().startswith("|"):
        return "table"
    if _HEADING.match(text, *line.span()):
        return "heading"
    return "item" if _ITEM.match(text, *line.span()) else "text"


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    item = _ITEM.match(text, start, end)
    if item:
        first = item.end()
    for mark in _END.finditer(text, first, end):
        if mark[0][0] == "." and _ABBREVIATION.search(text, max(first, mark.start() - 8), mark.start()) and mark.end() < end and not _new(text, mark):
            continue
        yield first, mark.end()
        first = mark.end()
    if text[first:end].strip():
        yield first, end


def _new(text: str, mark: re.Match[str]) -> bool:
    """A short number ends a sentence ("from platform 2."), but at its beginning it counts ("2. Send it")."""
    return text[mark.start() - 1].isdigit() and not text[max(0, mark.start() - 4) : mark.start()].strip().isdigit()


def _last(text: str, start: int, end: int) -> tuple[int, int]:
    return list(_sentences(text, start, end))[-1]


def _terms(text: str, start: int, end: int) -> list[str]:
    return [word for word in (term(token.lower) for token in tokens(text, start, end)) if word]


def _prose(text: str, span: tuple[int, int], above: frozenset[str], number: int) -> Iterator[Statement]:
    sentence = text[span[0] : span[1]]
    if sentence.rstrip(" \"'”’)").endswith("?") or _EXAMPLE.search(sentence):
        return
    found = list(tokens(text, *span))
    for first in range(0, len(found), LONGEST):
        yield from _statement(text, found[first : first + LONGEST], above, number)


def _statement(text: str, found: Sequence[Token], above: frozenset[str], number: int) -> Iterator[Statement]:
    colons = [place for place, token in enumerate(found) if token.lower == ":"]
    if colons and colons[0] < len(found) - 1:
        topic = found[: colons[0]]
        above = above | frozenset(filter(None, (term(token.lower) for token in topic)))
        found = found[colons[0] + 1 :]
    made = _made(text, found, above, number)
    if made:
        yield made


def _made(text: str, found: Sequence[Token], above: frozenset[str], number: int) -> Statement | None:
    if not found:
        return None
    figures, names = figures_of(found, text)
    taken = {place for figure in figures for place in range(figure.first, figure.last + 1)}
    lacking = _openings(found, frozenset(["without"]))
    words = tuple(
        names.get(place) or ("" if place in taken or token.is_number else _content(token, place in lacking))
        for place, token in enumerate(found)
    )
    if not any(words):
        return None
    clauses = tuple(place for place, token in enumerate(found) if token.breaks) + (len(found),)
    conditions = _openings(found, OPENERS)
    lower = [token.lower for token in found]
    return Statement(
        number, found[0].start, found[-1].end, words, above, clauses, conditions, figures,
        tuple(_denials(lower, words, clauses, conditions)), _negates(lower),
        bool(_HISTORY.search(text[found[0].start : found[-1].end])), bool(_HEDGE & set(lower)),
        bool({"only", "except", "otherwise", "else", "other"} & set(lower)), bool({"must", "required", "needed", "need", "needs", "have", "has", "mandatory", "obligatory"} & set(lower)),
    )  # fmt: skip


def _content(token: Token, lacking: bool) -> str:
    word = token.lower
    word = word if len(word) == 1 and word.isalpha() and word not in "ais" else term(word)
    return f"without {word}" if lacking and word else word


def _openings(found: Sequence[Token], openers: frozenset[str]) -> frozenset[int]:
    """Return the tokens from each opener to the end of its clause; "even if" opens nothing."""
    inside, places = False, set[int]()
    for place, token in enumerate(found):
        if token.breaks:
            inside = False
        inside = inside or (token.lower in openers and (not place or found[place - 1].lower != "even"))
        if inside:
            places.add(place)
    return frozenset(places)


def _negates(lower: Sequence[str]) -> bool:
    return any(_is_not(lower, place) or word in {"no", "without", "none", "nobody", "nothing", "only"}
               for place, word in enumerate(lower))  # fmt: skip


def _is_not(lower: Sequence[str], place: int) -> bool:
    word = lower[place]
    following = lower[place + 1] if place + 1 < len(lower) else ""
    longer = word == "no" and following == "longer"
    return longer or word in {"forbidden", "prohibited"} or (
        (word in _NOT or word.endswith("n't")) and following not in _SOFTENS
    )


def _denials(
    lower: Sequence[str], words: Sequence[str], clauses: Sequence[int], conditions: frozenset[int]
) -> Iterator[Denial]:
    for place, word in enumerate(lower):
        if place in conditions or not _is_not(lower, place):
            continue
        end = next(clause for clause in clauses if clause >= place)
        denied = tuple(filter(None, words[place + 1 : end]))
        if word in {"forbidden", "prohibited"}:
            denied = ("allow",)
        near = lower[max(0, place - 1) : place + 4]
        lifts = bool({"needn't"} & set(near)) or bool({"have", "need", "required", "necessary", "obliged"} & set(near))
        yield Denial(denied, place, lifts, word == "never")


def _cells(text: str, lines: Sequence[tuple[int, int]], above: frozenset[str], number: int) -> Iterator[Statement]:
    """Read each cell behind the first of its row with the row's name and the column's."""
    if len(lines) < 3 or "-" not in text[slice(*lines[1])] or text[slice(*lines[1])].strip("|:- \t"):
        return
    header = list(_columns(text, *lines[0]))
    for line in lines[2:]:
        cells = list(_columns(text, *line))[:MOST_CELLS]
        if len(cells) != len(header[:MOST_CELLS]) or len(cells) < 2:
            continue
        name = list(tokens(text, *cells[0]))
        for column, cell in zip(header[1:], cells[1:], strict=False):
            statement = _cell(text, name, list(tokens(text, *column)), list(tokens(text, *cell)), above, number)
            if statement:
                yield statement


def _cell(
    text: str, name: Sequence[Token], column: Sequence[Token], cell: Sequence[Token], above: frozenset[str], number: int
) -> Statement | None:
    comma = Token(",", name[-1].end, name[-1].end) if name else None
    if not comma or not cell or len(cell) > 12:
        return None
    unit = [token for token in column if token.lower in {"days", "months", "weeks", "hours", "nights", "years", "%"}]
    bare = len(cell) == 1 and cell[0].is_number
    found = [*name, comma, *column, comma, *cell, *(unit[:1] if bare else ())]
    made = _made(text, found, above, number)
    row = frozenset(filter(None, (term(token.lower) for token in name))) | {token.lower for token in name if token.is_number}
    if not made or len(made.figures) != 1 or made.figures[0].first <= len(name) + len(column) or not row:
        return None
    from dataclasses import replace

    return replace(made, start=name[0].start, end=cell[-1].end, row=row, denials=())


def _columns(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    bars = [found.start() for found in re.finditer(r"(?<!\\)\|", text[start:end])]
    for left, right in zip(bars, bars[1:], strict=False):
        yield start + left + 1, start + right
