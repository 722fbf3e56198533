"""The search for contradictions: candidate pairs by shared terms, then the differences of each pair.

Two statements are compared where they share most of their terms, by weight, and are about the same case. They are about
two cases where each has an important word that the other lacks, or where a condition or the row of a table differs. The
search prefers precision: it may miss contradictions.

English alone is read: a text in another language states nothing here (``language.no_rules`` says so).

The work is bounded. All texts together have at most MOST_STATEMENTS statements, and each text gets its share. A
statement has at most ``LONGEST`` tokens and ``MOST_FIGURES`` figures. A term of more than MOST_HOLDERS statements gives
no candidate. Each statement is compared with MOST_CANDIDATES others. So the time is linear in the length of the texts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.words.contradictions.alignment import Weights
from rag_harness.words.contradictions.opposition import Matched, Opposed, denied, differing, matched, opposed
from rag_harness.words.contradictions.statements import Statement, statements
from rag_harness.words.language import foreign

ANSWER = -1
"""The number of the answer in the results of ``against``."""
MOST_STATEMENTS = 4_000
MOST_HOLDERS = 32
MOST_CANDIDATES = 6
LEAST_AGREED = 0.45
"""Least similarity of two statements with the same figure, for them to say the same."""
_SLACK = 0.05
_EDITION = re.compile(
    r"\b(?:edition|version|release|firmware|revision)(?: of)? (?:v ?)?([0-9][\w.]{0,10})"
    r"|\b((?:19|20)[0-9]{2}) (?:edition|version|revision)"
    r"|\b(?:effective|valid|in force)(?: as of| from| since)? ([\w ]{0,14}(?:19|20)[0-9]{2})",
    re.I,
)

StatementPair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence, or a table row up to a cell, at ``start`` to ``end`` of text number ``text``, from 0."""

    text: int
    start: int
    end: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both hold.

    Attributes:
        first, second: the statements. The first is of the text with the lower number.
        kind: "number", "date", "negation" or "version" (another version, or texts that name different editions).
        differs: what the first says and what the second says. Of a negation: "denied" and "affirmed".
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

    A statement that stands in both texts contradicts neither. Case and white space do not count.
    """
    return _Reading(texts, idf).found()


def against(answer: str, sources: Sequence[str], idf: Mapping[str, float] | None = None) -> list[Contradiction]:
    """Return the contradictions between ``answer`` and ``sources``. Quotes of the answer come first, numbered ANSWER.

    Where another source agrees with the answer, the contradiction is one between sources and is not returned.
    """
    return _Reading((answer, *sources), idf, answers=1).found()


class _Reading:
    """The texts of one search. With ``answers`` 1, only the first text is compared with the others."""

    def __init__(self, texts: Sequence[str], idf: Mapping[str, float] | None, answers: int = 0) -> None:
        share = MOST_STATEMENTS // max(1, len(texts)) + 1
        self._texts, self._answers = texts, answers
        read = [(number, text) for number, text in enumerate(texts) if not foreign(text)]
        self._all = [one for number, text in read for one in statements(text, number, share)]
        self._weights = Weights(self._all, idf)
        self._holding = _holders(self._all)
        self._matched = {pair: list(matched(*self._both(pair), self._weights)) for pair in self._pairs()}
        self._agreed = self._agreements()
        self._affirmed = self._affirmations() if answers else frozenset()
        self._editions = [_editions(text) for text in texts]

    def found(self) -> list[Contradiction]:
        """Return the contradictions, in the order of the first statement, then of the second."""
        told = ((pair, self._opposed(pair, found)) for pair, found in self._matched.items())
        return [self._contradiction(pair, what) for pair, what in told if what]

    def _both(self, pair: StatementPair) -> tuple[Statement, Statement]:
        return self._all[pair[0]], self._all[pair[1]]

    def _pairs(self) -> list[StatementPair]:
        """Return pairs of similar statements of different texts, but none that both texts have in the same words."""
        stated = [" ".join(self._texts[one.text][one.start : one.end].lower().split()) for one in self._all]
        saying = defaultdict(set)
        for said, one in zip(stated, self._all, strict=True):
            saying[said].add(one.text)
        pairs = {pair for place in self._asking() for pair in self._candidates(place)}
        told = [saying[said] for said in stated]
        return sorted(pair for pair in pairs if not self._told(pair, told))

    def _told(self, pair: StatementPair, told: Sequence[set[int]]) -> bool:
        """Return whether the other text has the same words. An answer is checked by ``_agreements`` instead."""
        one, other = pair
        if self._answers:
            return False
        return self._all[other].text in told[one] or self._all[one].text in told[other]

    def _asking(self) -> Iterator[int]:
        """Yield the statements that need candidates: all of an answer, else those with a figure or a denial."""
        for place, one in enumerate(self._all):
            if (one.figures or one.denials or self._answers) and not (self._answers and one.text):
                yield place

    def _candidates(self, place: int) -> Iterator[StatementPair]:
        statement = self._all[place]
        shared: Counter[int] = Counter()
        for word in sorted(statement.terms):
            holders = self._holding[word]
            if len(holders) <= MOST_HOLDERS:
                shared.update(dict.fromkeys(holders, self._weights.of(word)))
        best = sorted(
            (-round(weight, 9), self._all[other].start, other)
            for other, weight in shared.items()
            if self._all[other].text != statement.text
        )
        yield from ((min(place, other), max(place, other)) for _, _, other in best[:MOST_CANDIDATES])

    def _agreements(self) -> dict[tuple[int, int, int], float]:
        """Return the similarity of the closest agreeing statement, by statement, figure and text (an answer: any)."""
        agreed: dict[tuple[int, int, int], float] = defaultdict(float)
        for pair, found in self._matched.items():
            for match in found:
                if match.agrees and match.alike >= LEAST_AGREED:
                    for said in self._sayings(pair, match):
                        agreed[said] = max(agreed[said], match.alike)
        return agreed

    def _sayings(self, pair: StatementPair, match: Matched) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        first, second = self._both(pair)
        asked = ANSWER if self._answers else second.text
        return (pair[0], match.first.first, asked), (pair[1], match.second.first, first.text)

    def _affirmations(self) -> frozenset[int]:
        """Return the statements of an answer that a source also makes, with the same negation."""
        return frozenset(one for one, other in self._matched if self._says_alike(*self._both((one, other))))

    def _says_alike(self, first: Statement, second: Statement) -> bool:
        if first.negates != second.negates:
            return False
        shared, all_terms = first.terms & second.terms, first.terms | second.terms
        return self._weights.sum(shared) >= LEAST_AGREED * self._weights.sum(all_terms)

    def _opposed(self, pair: StatementPair, found: list[Matched]) -> Opposed | None:
        first, second = self._both(pair)
        if not (first.history or second.history):
            for match in differing(found):
                said = max(self._agreed.get(one, 0.0) for one in self._sayings(pair, match))
                if said < match.alike - _SLACK:
                    return opposed(match)
        if pair[0] in self._affirmed:
            return None
        turned = denied(second, first, self._weights)
        return denied(first, second, self._weights) or (turned and Opposed(turned.kind, turned.second, turned.first))

    def _contradiction(self, pair: StatementPair, what: Opposed) -> Contradiction:
        first, second = self._both(pair)
        renewed = self._editions[first.text] != self._editions[second.text]
        kind = "version" if renewed and what.kind != "negation" else what.kind
        return Contradiction(self._quote(first), self._quote(second), kind, (what.first, what.second))

    def _quote(self, one: Statement) -> Quote:
        return Quote(one.text - self._answers, one.start, one.end, self._texts[one.text][one.start : one.end])


def _holders(every: Sequence[Statement]) -> dict[str, list[int]]:
    holding: dict[str, list[int]] = defaultdict(list)
    for place, statement in enumerate(every):
        for word in statement.terms:
            holding[word].append(place)
    return holding


def _editions(text: str) -> frozenset[str]:
    return frozenset(" ".join("".join(found).lower().split()) for found in _EDITION.findall(text))
