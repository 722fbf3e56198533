"""Contradictions between texts, without a model: another figure, date or version in the same role, or a denial.

Two statements are held against each other where they share most of what they say, by weight of their words, and
nothing tells them apart: a word that only the one has against a word that only the other has, a condition, a row of a
table. It is made to be right when it speaks: what it does not report may still be a contradiction.

The work is bounded. Of each text the first ``MOST_STATEMENTS`` statements are read, of each statement at most
``LONGEST`` tokens; terms in more than ``MOST_HOLDERS`` statements lead to no candidates, and each statement is compared
with at most ``MOST_CANDIDATES`` others. So the time is linear in the length of the texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.pipelines.reliability.opposition import (
    LEAST_AGREED,
    Matched,
    Opposed,
    Weights,
    denied,
    matched,
)
from rag_harness.pipelines.reliability.statements import Statement, statements

ANSWER = -1
"""The number of the answer among the texts, in what ``against`` returns."""
AGREED_SLACK = 0.05
MOST_HOLDERS = 48
MOST_CANDIDATES = 16
_PRIOR = 60
_DATED = frozenset(("date", "clock", "day of the month", "year"))
_EDITION = re.compile(
    r"\b(?:edition|version|release|firmware|revision)(?: of)? (?:v ?)?(\d[\w.]{0,10})"
    r"|\b((?:19|20)\d\d) (?:edition|version|revision)|\b(?:effective|valid|in force)(?: as of| from| since)? ([\w ]{0,14}(?:19|20)\d\d)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence, or a row of a table, of one of the texts; ``text`` is its number, ``start`` and ``end`` in it."""

    text: int
    start: int
    end: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both hold.

    Attributes:
        first, second: the statements, of the text with the lower number first.
        kind: "number", "date", "negation" or "version" (a version, or texts that name different editions).
        differs: what the one says and what the other says.
    """

    first: Quote
    second: Quote
    kind: str
    differs: tuple[str, str]


def contradictions(texts: Sequence[str], idf: Mapping[str, float] | None = None) -> list[Contradiction]:
    """Return the contradictions between each two of ``texts``, in the order of their places.

    Args:
        texts: as they were retrieved, plain or Markdown.
        idf: weight of each term (``vocabulary.term``), any scale; by default its rarity among the statements given.

    A statement that stands in both texts, upper and lower case and white space folded, says nothing against either.
    """
    return _found([statements(text, number) for number, text in enumerate(texts)], texts, idf, 0)


def against(answer: str, sources: Sequence[str], idf: Mapping[str, float] | None = None) -> list[Contradiction]:
    """Return where ``answer`` contradicts one of ``sources``; its quotes come first, with ``ANSWER`` as their number.

    What another source says just as the answer does is no fault of the answer: that is between the sources.
    """
    read = [statements(text, number) for number, text in enumerate((answer, *sources))]
    return _found(read, (answer, *sources), idf, 1)


def _found(
    read: Sequence[list[Statement]], texts: Sequence[str], idf: Mapping[str, float] | None, answers: int
) -> list[Contradiction]:
    flat = [statement for one in read for statement in one]
    folded = [" ".join(texts[one.text][one.start : one.end].lower().split()) for one in flat]
    holders = defaultdict(set)
    for place, saying in enumerate(folded):
        holders[saying].add(flat[place].text)
    weights = _weights(flat, idf)
    pairs = [
        (one, other)
        for one, other in _candidates(flat, weights, answers)
        if flat[other].text not in holders[folded[one]] and flat[one].text not in holders[folded[other]]
    ]
    return _reported(flat, pairs, weights, texts, answers)


def _weights(flat: Sequence[Statement], idf: Mapping[str, float] | None) -> Weights:
    if idf:
        most = max(idf.values()) or 1.0
        return Weights({word: value / most for word, value in idf.items()})
    count = Counter(word for statement in flat for word in statement.terms)
    scale = math.log(len(flat) + _PRIOR)
    return Weights({word: math.log((len(flat) + _PRIOR) / (often + 1)) / scale for word, often in count.items()})


def _candidates(flat: Sequence[Statement], weights: Weights, answers: int) -> Iterator[tuple[int, int]]:
    """Return places of statements of different texts that share the most, each with its best others."""
    holding: dict[str, list[int]] = defaultdict(list)
    for place, statement in enumerate(flat):
        for word in statement.terms:
            holding[word].append(place)
    kept: set[tuple[int, int]] = set()
    for place, statement in enumerate(flat):
        if answers and statement.text:
            break
        shared: Counter[int] = Counter()
        for word in sorted(statement.terms):
            if len(holding[word]) <= MOST_HOLDERS:
                for other in holding[word]:
                    shared[other] += weights.of(word)
        best = sorted((-round(weight, 9), flat[other].start, other) for other, weight in shared.items() if flat[other].text != statement.text)
        kept.update((min(place, other), max(place, other)) for _, _, other in best[:MOST_CANDIDATES])
    yield from sorted(kept)


def _reported(
    flat: Sequence[Statement], pairs: Sequence[tuple[int, int]], weights: Weights, texts: Sequence[str], answers: int
) -> list[Contradiction]:
    figures = {pair: list(matched(flat[pair[0]], flat[pair[1]], weights)) for pair in pairs}
    agreed: dict[tuple[int, int, int], float] = defaultdict(float)
    for (one, other), found in figures.items():
        for match in found:
            if match.agrees and match.alike >= LEAST_AGREED:
                for said in ((one, match.first.first, 0 if answers else flat[other].text), (other, match.second.first, flat[one].text)):
                    agreed[said] = max(agreed[said], match.alike)
    editions = [_editions(text) for text in texts]
    reported = []
    for one, other in pairs:
        first, second = flat[one], flat[other]
        opposed = _differing(first, second, figures[one, other], agreed, (one, other), answers) or (
            denied(first, second, weights) or _turned(denied(second, first, weights))
        )
        if opposed:
            renewed = editions[first.text] != editions[second.text]
            kind = "version" if renewed else opposed.kind
            reported.append(
                Contradiction(
                    _quote(first, texts, answers), _quote(second, texts, answers), kind, (opposed.first, opposed.second)
                )
            )
    return reported


def _turned(opposed: Opposed | None) -> Opposed | None:
    return Opposed(opposed.kind, opposed.second, opposed.first) if opposed else None


def _differing(
    first: Statement, second: Statement, found: Sequence[Matched], agreed: Mapping[tuple[int, int, int], float],
    places: tuple[int, int], answers: int,
) -> Opposed | None:  # fmt: skip
    if first.history or second.history:
        return None
    one, other = places
    if any({m.first.bound, m.second.bound} == {"upper", "lower"} and not m.agrees for m in found):
        return None
    settled = {m.first.first for m in found if m.agrees}, {m.second.first for m in found if m.agrees}
    for match in sorted(found, key=lambda m: -m.alike):
        if match.agrees or not match.comparable or match.first.first in settled[0] or match.second.first in settled[1]:
            continue
        said = (one, match.first.first, 0 if answers else second.text), (other, match.second.first, first.text)
        if max(agreed.get(figure, 0.0) for figure in said) >= match.alike - AGREED_SLACK:
            continue
        kind = "version" if match.first.dimension == "version" else "date" if match.first.dimension in _DATED else "number"
        return Opposed(kind, match.first.written, match.second.written)
    return None


def _editions(text: str) -> frozenset[str]:
    return frozenset(" ".join(filter(None, found)).lower() for found in _EDITION.findall(text))


def _quote(statement: Statement, texts: Sequence[str], answers: int) -> Quote:
    text = texts[statement.text]
    return Quote(statement.text - answers, statement.start, statement.end, text[statement.start : statement.end])
