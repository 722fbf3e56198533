"""Sentences of a text with their positions, by one rule for all callers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

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
