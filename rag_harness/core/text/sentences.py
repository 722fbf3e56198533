"""Sentences of a text with their positions, and its statements with terms, figures and negation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise

from rag_harness.core.text.figures import OPENERS, UNITS, Figure, Token, figures_of, light, term, tokens, word_set
from rag_harness.core.text.language_detection import foreign
from rag_harness.core.text.languages import ENGLISH, rules_of
from rag_harness.core.text.terms import STOPWORDS

# A sentence ends at a mark with blank space behind it, at the marks of Chinese and Japanese, and with its line. It goes
# on before a small letter, behind an abbreviation, and behind the number of an item. Options say that lines are
# wrapped, and that a semicolon ends one, too, where both halves of "open daily; closed in May" count.
#
# It is written here because splitters on the registry either bring a model (spaCy, Stanza), ask for data that is
# downloaded (NLTK's Punkt), or give no places in the text as it was written (pySBD). Borders of chunks are another
# thing: they cut what is too long, and lie with the chunkers.

Span = tuple[int, int]

_CLOSING, _OPENING = "\"'”’“»)\\]*_`", "\"'“”‘„«»(\\[*_`¿¡"
_MARK = rf"[.!?…]+[{_CLOSING}]*(?=\s|$)|[。！？｡]+[”’」』）]*"
_NEXT = re.compile(rf"\s*[{_OPENING}]*(\w+)?")
_NUMBER_OF_ITEM = re.compile(r"\s*(?:[-*+]\s+)?(?:\d{1,3}|[a-zA-Z])$")
_LOOKED_AT = 80
_LONGEST_MARKER = 12
_BLANK = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""All blank characters of Unicode."""

_NEVER_LAST = frozenset("e.g i.e cf approx incl max min vs mr mrs ms dr prof sen gov rep gen st mt".split())  # noqa: SIM905
_BEFORE_A_NUMBER = frozenset("no nos nr fig figs eq vol ch sec p pp art v ver".split())  # noqa: SIM905
_SOMETIMES_LAST = frozenset(
    "etc al jr sr inc ltd co corp u.s u.k a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec".split()  # noqa: SIM905
)
"""These end a sentence before a function word, as single letters do: "until 5 p.m. The shop", not "5 p.m. Friday"."""
_LONGEST_SHORT = 8


def sentence_spans(
    text: str,
    start: int = 0,
    end: int | None = None,
    *,
    language: str = "",
    wrapped: bool = False,
    clauses: bool = False,
) -> Iterator[Span]:
    """Yield the places of the sentences of ``text[start:end]``, without blank space around them.

    Args:
        text: a text as it was written.
        start: where to begin.
        end: where to stop; at the end of the text where None.
        language: the code of its language, whose abbreviations count; found in the text where empty.
        wrapped: whether a sentence may go on in the next line; otherwise it ends with its line.
        clauses: whether a semicolon ends one.
    """
    end = len(text) if end is None else end
    language = language or foreign(text) or ENGLISH
    pattern = re.compile("|".join([_MARK, *([] if wrapped else [r"\n+"]), *([r";(?=\s|$)"] if clauses else [])]))
    borders, first = [start], start
    for mark in pattern.finditer(text, start, end):
        if mark[0][0] not in ".!?…" or not _goes_on(text, first, mark, end, language):
            first = mark.end()
            borders.append(first)
    found = [stripped(text, *span) for span in pairwise([*borders, end])]
    yield from _with_signs(text, [span for span in found if span[0] < span[1]])


def sentence_texts(text: str, language: str = "") -> list[str]:
    """Return the sentences of ``text`` themselves; its language is found where it is empty."""
    return [text[slice(*span)] for span in sentence_spans(text, language=language)]


def _goes_on(text: str, first: int, mark: re.Match[str], end: int, language: str) -> bool:
    """Return whether the sentence that begins at ``first`` goes on behind a mark."""
    dot = mark.start()
    following = text[mark.end() : min(end, mark.end() + _LOOKED_AT)]
    if following.lstrip()[:1].islower():
        return True
    if text[dot] != "." or text[dot + 1 : dot + 2] == ".":
        return False
    if dot - first < _LONGEST_MARKER and _NUMBER_OF_ITEM.fullmatch(text, first, dot):
        return True
    rules = rules_of(language)
    if rules is not None:
        return rules.goes_on(f"{text[max(first, dot - _LOOKED_AT) : dot]}.", following)
    return _is_short(text, first, dot, following)


def _is_short(text: str, first: int, dot: int, following: str) -> bool:
    """Return whether the dot behind an English word belongs to an abbreviation, and ends no sentence."""
    start = dot
    while start > first and dot - start <= _LONGEST_SHORT and (text[start - 1].isalnum() or text[start - 1] in "._"):
        start -= 1
    last, before = text[start:dot].lower(), text[max(first, start - 2) : start]
    is_initial = (len(last) == 1 and text[start].isupper() and before[-1:] != "°") or (
        last[-2:-1] == "." and last[-1].isalpha()
    )
    known = last in _BEFORE_A_NUMBER or last in _NEVER_LAST or last in _SOMETIMES_LAST
    if not (known or is_initial):
        return False
    found = _NEXT.match(following)
    word = (found[1] if found else None) or ""
    if last in _BEFORE_A_NUMBER:
        # A bare "No." states nothing: it belongs to the sentence behind it.
        is_bare = last == "no" and not text[first:start].strip()
        return word[:1].isdigit() or (is_bare and bool(word))
    # The letters behind a number are a unit: "within 45 ms.", "at 48 V".
    is_unit = last.isalpha() and before.rstrip()[-1:].isdigit()
    if last in _NEVER_LAST and not is_unit:
        return bool(word)
    may_end = last in _SOMETIMES_LAST or (is_initial and not is_unit)
    return bool(word) and may_end and word.lower() not in STOPWORDS


def _with_signs(text: str, found: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans; signs without a word, as the end of a formula or a smiley, belong to what is before them."""
    before: Span | None = None
    for start, end in found:
        if before and not any(map(str.isalnum, text[start:end])) and "\n" not in text[before[1] : start]:
            before = before[0], end
            continue
        if before:
            yield before
        before = start, end
    if before:
        yield before


def stripped(text: str, start: int, end: int, off: str = "") -> Span:
    """Return the span without blank space at either end, and without characters of ``off`` at its start."""
    piece = text[start:end].rstrip()
    kept = piece.lstrip(_BLANK + off)
    return start + len(piece) - len(kept), start + len(piece)


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


# Negations of a sentence, and words that make two sentences hard to compare.

HISTORY = re.compile(
    r"\b(?:formerly|former|previously|previous|used to|earlier|older|in the past|back then|at that time|was replaced"
    r"|were replaced|superseded|obsolete|originally|once was"
    r"|(?:until|before|till|up to) (?:the end of )?(?:[a-z]{3,9} )?(?:19|20)[0-9]{2}|in (?:19|20)[0-9]{2},)\b",
    re.I,
)
"""Words for the past: the sentence does not say what holds now."""
EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g|say you|suppose|imagine|example)\b", re.I)
HEDGES = word_set("most mostly usually typically normally generally often average")
RESTRICTS = word_set("only except otherwise else other")
OBLIGES = word_set("must required needed need needs have has mandatory obligatory")
_LIFTS = word_set("needn't have need required necessary obliged")
_NOT = word_set("not never cannot neither")
_FORBIDS = word_set("forbidden prohibited")
_NONE = word_set("no without none nobody nothing only")
# "not only", "not until": the words after these are affirmed.
_SOFTENS = word_set("only just always all every necessarily yet more less later earlier fewer longer until before even")


@dataclass(frozen=True, slots=True)
class Denial:
    """A negation at token ``place``; ``terms`` are the terms after it in its clause.

    ``lifts``: it only says that something is not required. ``always``: it holds under every condition.
    """

    terms: tuple[str, ...]
    place: int
    lifts: bool
    always: bool


def denials(
    lower: Sequence[str], terms: Sequence[str], clauses: Sequence[int], conditions: frozenset[int]
) -> Iterator[Denial]:
    """Return the denials of a sentence of the tokens ``lower``. A negation in a condition does not count."""
    for place, said in enumerate(lower):
        if place in conditions or not _denies(lower, place):
            continue
        end = next(clause for clause in clauses if clause >= place)
        denied = ("allow",) if said in _FORBIDS else tuple(filter(None, terms[place + 1 : end]))
        near = frozenset(lower[max(0, place - 1) : place + 4])
        yield Denial(denied, place, bool(_LIFTS & near), said == "never")


def negates(lower: Sequence[str]) -> bool:
    """Return whether a sentence has a negation, or a word such as "only"."""
    return any(word in _NONE or _denies(lower, place) for place, word in enumerate(lower))


def _denies(lower: Sequence[str], place: int) -> bool:
    said, after = lower[place], lower[place + 1] if place + 1 < len(lower) else ""
    if said in _FORBIDS or (said == "no" and after == "longer"):
        return True
    return (said in _NOT or said.endswith("n't")) and after not in _SOFTENS


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
    """Return the first ``most`` statements of text ``number``. Questions, examples and code do not count."""
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
        yield from _cell_statements(text, passage, number) if passage.cells else _sentence(text, passage, number)


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


def _cell_statements(text: str, passage: Passage, number: int) -> Iterator[Statement]:
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
