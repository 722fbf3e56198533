"""Statements of a text: sentences and table cells with their places, terms, figures, conditions and denials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from rag_harness.words.contradictions.denials import (
    EXAMPLE,
    HEDGES,
    HISTORY,
    OBLIGES,
    RESTRICTS,
    Denial,
    denials,
    negates,
)
from rag_harness.words.contradictions.figure import Figure
from rag_harness.words.contradictions.passages import Passage, passages, without_markup
from rag_harness.words.contradictions.stated_figures import figures_of
from rag_harness.words.contradictions.vocabulary import OPENERS, UNITS, Token, light, term, tokens
from rag_harness.words.sentence_ends import Span

MOST_TOKENS_READ = 80
"""Most tokens of a statement. The rest of a longer sentence is the next statement."""
MOST_CELLS = 12
"""Most cells of a row. Later cells are not read."""
_LONGEST_CELL = 12
_LACKING = frozenset(["without"])


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A sentence, or a table cell together with the names of its row and its column.

    Attributes:
        text: the number of its text.
        start, end: its place in the text.
        words: the term of each token; empty for a mark, a function word, a part of a figure.
        terms: all terms.
        above: the terms of headings, of the introducing line, of words before a colon.
        clauses: for each clause the first token after it.
        conditions: the tokens of conditions.
        scopes: for each figure the terms up to the end of its clause. Later clauses are about something else.
        row: the terms of a cell's row; empty for a sentence.
    """

    text: int
    start: int
    end: int
    words: tuple[str, ...]
    terms: frozenset[str]
    above: frozenset[str]
    clauses: tuple[int, ...]
    conditions: frozenset[int]
    figures: tuple[Figure, ...]
    scopes: tuple[frozenset[str], ...]
    denials: tuple[Denial, ...]
    negates: bool
    history: bool
    hedged: bool
    restricts: bool
    obliges: bool
    row: frozenset[str] = field(default=frozenset())

    @property
    def is_cell(self) -> bool:
        return bool(self.row)

    def upto(self, end: int) -> frozenset[str]:
        """Return the terms of the tokens before ``end``."""
        return frozenset(filter(None, self.words[:end]))


def statements(text: str, number: int, most: int) -> list[Statement]:
    """Return the first ``most`` statements of text ``number``. Questions, examples and code are no statements."""
    # More are read than are asked for, up to the next power of two: so it hangs less on how many texts there are.
    found = _read(text, 1 << most.bit_length())[:most]
    return [replace(one, text=number) for one in found] if number else list(found)


@lru_cache(maxsize=1024)
def _read(text: str, most: int) -> tuple[Statement, ...]:
    """Return the first ``most`` statements of a text. A chunk is read once, at whichever rank and beside how many."""
    plain = without_markup(text)
    return tuple(islice(_all(plain, 0), most))


def _all(text: str, number: int) -> Iterator[Statement]:
    for passage in passages(text):
        yield from _cells(text, passage, number) if passage.cells else _sentence(text, passage, number)


def _sentence(text: str, passage: Passage, number: int) -> Iterator[Statement]:
    said = text[passage.start : passage.end]
    if said.rstrip(" \"'”’)").endswith("?") or EXAMPLE.search(said):
        return
    found = list(tokens(text, passage.start, passage.end))
    for first in range(0, len(found), MOST_TOKENS_READ):
        made = _behind_colon(text, found[first : first + MOST_TOKENS_READ], passage.above, number)
        if made:
            yield made


def _behind_colon(text: str, found: Sequence[Token], above: frozenset[str], number: int) -> Statement | None:
    """Treat the words before a colon as a heading: "Battery life: 22 hours"."""
    colon = next((place for place, token in enumerate(found[:-1]) if token.lower == ":"), -1)
    topic = frozenset(filter(None, (term(token.lower) for token in found[: max(0, colon)])))
    return _statement(text, found[colon + 1 :], above | topic, number)


def _statement(text: str, found: Sequence[Token], above: frozenset[str], number: int) -> Statement | None:
    figures, names = figures_of(found, text)
    words = _words(found, figures, names)
    if not any(words):
        return None
    clauses = (*(place for place, token in enumerate(found) if token.breaks), len(found))
    conditions = _openings(found, OPENERS)
    lower = [token.lower for token in found]
    known = frozenset(lower)
    return Statement(
        text=number,
        start=found[0].start,
        end=found[-1].end,
        words=words,
        terms=frozenset(filter(None, words)),
        above=above,
        clauses=clauses,
        conditions=conditions,
        figures=figures,
        scopes=tuple(_scope(words, clauses, figure) for figure in figures),
        denials=tuple(denials(lower, words, clauses, conditions)),
        negates=negates(lower),
        history=bool(HISTORY.search(" ".join(text[found[0].start : found[-1].end].split()))),
        hedged=bool(HEDGES & known),
        restricts=bool(RESTRICTS & known),
        obliges=bool(OBLIGES & known),
    )


def _words(found: Sequence[Token], figures: Sequence[Figure], names: dict[int, str]) -> tuple[str, ...]:
    taken = {place for figure in figures for place in range(figure.first, figure.last + 1)}
    lacking = _openings(found, _LACKING)
    words = []
    for place, token in enumerate(found):
        word = "" if place in taken or token.is_number else _content(token.lower)
        words.append(names.get(place) or (f"without {word}" if word and place in lacking else word))
    return tuple(words)


def _content(word: str) -> str:
    """Return the term of a word. A single letter is a name: the lamp S is not the lamp L."""
    return word if len(word) == 1 and word.isalpha() and word not in "ais" else term(word)


def _openings(found: Sequence[Token], openers: frozenset[str]) -> frozenset[int]:
    """Return the tokens from each opener to the end of its clause; "even if" opens nothing."""
    inside, places = False, set[int]()
    for place, token in enumerate(found):
        opens = token.lower in openers and not (place and found[place - 1].lower == "even")
        inside = (inside or opens) and not token.breaks
        if inside:
            places.add(place)
    return frozenset(places)


def _scope(words: Sequence[str], clauses: Sequence[int], figure: Figure) -> frozenset[str]:
    """Return the terms of a figure's clause. A short first clause ("With a volume of 71 litres, …") joins the next."""
    ends = [clause for clause in clauses if clause > figure.last]
    scope = frozenset(filter(None, words[: ends[0]]))
    return scope if len(scope - light()) > 1 or len(ends) == 1 else frozenset(filter(None, words[: ends[1]]))


def _cells(text: str, passage: Passage, number: int) -> Iterator[Statement]:
    name = list(tokens(text, *passage.cells[0]))[:_LONGEST_CELL]
    row = frozenset(term(token.lower) or (token.lower if token.is_number else "") for token in name) - {""}
    if not row:
        return
    for column, cell in list(zip(passage.header, passage.cells, strict=True))[1:MOST_CELLS]:
        made = _cell(text, (name, column, cell), passage.above, number)
        if made:
            yield replace(made, row=row, denials=())


def _cell(text: str, parts: tuple[list[Token], Span, Span], above: frozenset[str], number: int) -> Statement | None:
    name, head, said = parts[0], list(tokens(text, *parts[1])), list(tokens(text, *parts[2]))
    if not said or len(said) + len(head) > 2 * _LONGEST_CELL:
        return None
    units = [token for token in head if token.lower in UNITS] if len(said) == 1 and said[0].is_number else []
    comma = Token(",", name[-1].end, name[-1].end)
    made = _statement(text, [*name, comma, *head, comma, *said, *units[:1]], above, number)
    in_cell = made is not None and len(made.figures) == 1 and made.figures[0].first > len(name) + len(head)
    return replace(made, end=said[-1].end) if made and in_cell else None
