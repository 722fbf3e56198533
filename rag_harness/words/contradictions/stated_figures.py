"""Figures of a sentence with their types: amounts, measures, counts, dates, versions; and numbers that are names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_harness.words.contradictions.figure import DASHES, DATED, Figure, figure, token_words, value, word
from rag_harness.words.contradictions.stated_dates import dated, year
from rag_harness.words.contradictions.vocabulary import LABELS, UNITS, VERSION_LABELS, Token, light, term, word_set

MOST_FIGURES = 12
"""Most figures of a statement, numbers in names included. Later ones are not compared."""

_CURRENCIES = {
    name: sign
    for sign, names in (("€", "€ eur euro euros"), ("$", "usd dollar dollars"), ("£", "£ gbp pound pounds"))
    for name in names.split()
}
_ADJECTIVES = word_set("full whole calendar consecutive more further additional extra paid")
_MODALS = word_set("can may must will should to we you they it i not and or")
_BEFORE_FREE = word_set("is are be for completely always remains")
_NEEDS = word_set("requires require needs need least from")
_REACHED = word_set("since from least of")
_OR_LATER = re.compile(r"or (?:later|newer|higher|above)\b|and (?:up|later|newer|above)\b")


def figures_of(found: Sequence[Token], text: str) -> tuple[tuple[Figure, ...], dict[int, str]]:
    """Return the figures of a sentence, and the names that its other numbers are part of ("zone 1"), by token."""
    figures: list[Figure] = []
    names: dict[int, str] = {}
    at = read = 0
    while at < len(found) and read < MOST_FIGURES:
        stated = _free(found, at)
        if not stated and value(found[at]) is not None:
            stated = _figure(found, at, names)
            read += 1
        if stated:
            figures.append(stated)
        at = max(at, stated.last if stated else at) + 1
    return tuple(_written(stated, found, text) for stated in _joined(figures, found)), names


def _written(stated: Figure, found: Sequence[Token], text: str) -> Figure:
    first, last = found[stated.first], found[stated.last]
    # A cell that is only a number has its unit in the header of its column.
    said = text[first.start : last.end] if first.start < last.end else f"{first.lower} {last.lower}"
    return replace(stated, written=" ".join(said.split()))


def _figure(found: Sequence[Token], at: int, names: dict[int, str]) -> Figure | None:
    """Return the figure that begins with the number at ``at``. A number in a name is noted, and gives None."""
    if stated := dated(found, at):
        return stated
    if name := _label(found, at, names):
        names[at] = name
        return None
    if stated := _ranged(found, at) or _amount(found, at) or year(found, at) or _version(found, at):
        return stated
    if name := _name(found, at):
        names[at] = name
        return None
    return _count(found, at)


def _amount(found: Sequence[Token], at: int) -> Figure | None:
    said = value(found[at]) or 0.0
    if word(found, at - 1) in {"€", "$", "£"}:
        return figure(found, (at - 1, at), word(found, at - 1), said)
    if currency := _CURRENCIES.get(word(found, at + 1)):
        return figure(found, (at, at + 1), currency, said)
    if word(found, at + 1) in {"cent", "cents"}:
        return figure(found, (at, at + 1), "€", said / 100)
    return _measured(found, at, said)


def _measured(found: Sequence[Token], at: int, said: float) -> Figure | None:
    after = at + 1 + (word(found, at + 1) in DASHES)
    if token_words(found, after, after + 2) == ["per", "cent"]:
        return figure(found, (at, after + 1), "percent", said)
    if word(found, after) in {"working", "business"} and word(found, after + 1) in {"day", "days"}:
        return figure(found, (at, after + 1), "working days", said)
    after += word(found, after) in _ADJECTIVES and word(found, after + 1) in UNITS
    unit = UNITS.get(word(found, after))
    return figure(found, (at, after), unit[0], said * unit[1]) if unit else None


def _free(found: Sequence[Token], at: int) -> Figure | None:
    """Return "free of charge" as an amount of 0."""
    here = found[at].lower
    if token_words(found, at, at + 3) == ["free", "of", "charge"]:
        return figure(found, (at, at + 2), "€", 0.0)
    if here == "no" and word(found, at + 1) in {"cost", "charge"} and word(found, at - 1) == "at":
        return figure(found, (at, at + 1), "€", 0.0)
    return figure(found, (at, at), "€", 0.0) if here == "free" and word(found, at - 1) in _BEFORE_FREE else None


def _ranged(found: Sequence[Token], at: int) -> Figure | None:
    """Return "3 to 5 weeks", "10–12 items", "between 2 and 4 bar" as one figure."""
    link = word(found, at + 1)
    links = link in DASHES or link == "to" or (link == "and" and word(found, at - 1) == "between")
    second = value(found[at + 2]) if links and at + 2 < len(found) else None
    if not second or dated(found, at + 2):
        return None
    end = _amount(found, at + 2) or _count(found, at + 2)
    low = (value(found[at]) or 0.0) * end.high / second
    first = at - 1 if word(found, at - 1) in {"€", "$", "£"} else at
    return replace(end, low=low, first=first, bound="") if low < end.high else None


def _version(found: Sequence[Token], at: int) -> Figure | None:
    """Return a version that is required or reached. A version that only names a thing is no figure."""
    subject, before = word(found, at - 1), word(found, at - 2)
    if not found[at].is_number or not term(subject) or subject in LABELS:
        return None
    is_label = subject in VERSION_LABELS
    later = bool(_OR_LATER.match(" ".join(token_words(found, at + 1, at + 3))))
    if not later and before not in (_REACHED if is_label else _NEEDS):
        return None
    numbers = [int(part) for part in re.split(r"[.,:]", found[at].lower)[:3]]
    said = float(sum(number * 10_000 ** (2 - place) for place, number in enumerate(numbers)))
    role = frozenset() if is_label else frozenset([term(subject)])
    return Figure("version", said, said, "", role, "", at, at)


def _label(found: Sequence[Token], at: int, names: dict[int, str]) -> str:
    """Return the name made of a label and a number: "zone 1", and the 2 of "zones 1 and 2"."""
    before = at - 1
    while before in names or (before > 0 and word(found, before) in {"and", "or", ",", *DASHES}):
        before -= 1
    label = word(found, before).removesuffix("s")
    is_first = before == at - 1 or before + 1 in names
    return f"{label} {found[at].lower}" if label in LABELS and is_first else ""


def _name(found: Sequence[Token], at: int) -> str:
    """Return the name that a number is part of ("Ferrite 4.2"). A verb or a light word before it makes no name."""
    before = word(found, at - 1)
    if not found[at].is_number or not term(before):
        return ""
    verb = term(before) in light() or before.endswith(("s", "ed", "ing")) or word(found, at - 2) in _MODALS
    return f"{before} {found[at].lower}" if before in VERSION_LABELS or not verb else ""


def _count(found: Sequence[Token], at: int) -> Figure:
    nouns: list[str] = []
    for token in found[at + 1 : at + 5]:
        if token.is_number or not term(token.lower):
            break
        nouns.append(term(token.lower))
    return replace(figure(found, (at, at), "count", value(found[at]) or 0.0), role=frozenset(nouns))


def _joined(figures: Sequence[Figure], found: Sequence[Token]) -> list[Figure]:
    """Join "between 1 % and 8 %" to one figure."""
    joined: list[Figure] = []
    for stated in figures:
        if joined and _linked(joined[-1], stated, found):
            first = joined.pop()
            joined.append(replace(stated, low=first.low, bound="", first=first.first))
        else:
            joined.append(stated)
    return joined


def _linked(first: Figure, second: Figure, found: Sequence[Token]) -> bool:
    between = token_words(found, first.last + 1, second.first)
    links = between in (["-"], ["–"], ["—"], ["to"])
    links = links or (between == ["and"] and word(found, first.first - 1) == "between")
    return (
        links
        and second.dimension not in DATED | {"count"}
        and first.dimension == second.dimension
        and first.low < second.high
    )
