"""Contradictions between texts, found without a model: another figure in the same role, or a negation."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_harness.core.text.figures import DATED, Figure, contrasts, light
from rag_harness.core.text.language_detection import foreign
from rag_harness.core.text.sentences import Denial, Statement, statements

__all__ = ["ANSWER", "Contradiction", "Quote", "against", "contradictions"]


LIGHTNESS = 0.3
"""Weight of a light word, as a share of the weight by its rarity."""
_PRIOR = 60
# Statements added to the count. Without them, each shared word of two short texts would be a common one.


class Weights:
    """Weights of terms: inverse frequency among statements, reduced for light words.

    Args:
        statements: the statements for the frequencies.
        idf: weights of terms to use instead, any scale. A term without a weight gets the highest.
    """

    def __init__(self, statements: Sequence[Statement], idf: Mapping[str, float] | None = None) -> None:
        count = Counter(word for statement in statements for word in statement.terms)
        if idf:
            most = max(idf.values()) or 1.0
            known = {word: idf.get(word, most) / most for word in count}
        else:
            seen = len(statements) + _PRIOR
            known = {word: math.log(seen / (often + 1)) / math.log(seen) for word, often in count.items()}
        self._of = {word: weight * (LIGHTNESS if word in light() else 1.0) for word, weight in known.items()}

    def of(self, word: str) -> float:
        """Return the weight of a term, in [0, 1]."""
        return self._of.get(word, 1.0)

    def sum(self, words: frozenset[str]) -> float:
        """Return the sum of the weights of ``words``. It does not depend on their order."""
        return math.fsum(map(self.of, words))


class Sides:
    """Two statements and their terms to compare: ``ours`` of the first, ``theirs`` of the second.

    Attributes:
        ours_only, theirs_only: terms that the other has neither in its sentence nor above.
    """

    def __init__(self, first: Statement, second: Statement, ours: frozenset[str], theirs: frozenset[str]) -> None:
        self.first, self.second, self.ours, self.theirs = first, second, ours, theirs
        self.ours_only = ours - theirs - second.above
        self.theirs_only = theirs - ours - first.above

    def alike(self, weights: Weights) -> float:
        """Return the weight share of the common terms, in [0, 1]; 0 with fewer than two, or with light ones alone."""
        shared = (self.ours - self.ours_only) | (self.theirs - self.theirs_only)
        if len(shared) < 2 or not shared - light():
            return 0.0
        both = weights.sum(shared)
        return both / (both + (weights.sum(self.ours_only) + weights.sum(self.theirs_only)) / 2)

    def one_case(self, whatever: bool = False) -> bool:
        """Return whether both are about one case. Different conditions make two cases, unless ``whatever``."""
        if self.ours_only - light() and self.theirs_only - light():
            return False
        if not whatever and (_on_condition(self.first, self.second) or _on_condition(self.second, self.first)):
            return False
        return self._rows_meet() and not any(self._contrast(group) for group in contrasts())

    def _contrast(self, group: frozenset[str]) -> bool:
        return (self.ours_only & group) != (self.theirs_only & group)

    def _rows_meet(self) -> bool:
        if self.first.is_cell and self.second.is_cell:
            return self.first.row == self.second.row and bool(self.first.above & self.second.above)
        rows = self.first.row | self.second.row
        return not rows or rows <= (self.theirs if self.first.is_cell else self.ours)


def _on_condition(one: Statement, other: Statement) -> bool:
    """Return whether one statement has a condition that the other lacks."""
    if not one.conditions:
        return False
    known = {(figure.dimension, figure.low) for figure in other.figures}
    figures = (figure for figure in one.figures if figure.first in one.conditions)
    words = frozenset(one.words[place] for place in one.conditions) - light() - {""}
    return bool(words - other.terms - other.above) or any((it.dimension, it.low) not in known for it in figures)


LEAST_SHARED = 0.58
"""Least weight share of common terms at which the figures of two statements are compared."""
LEAST_DENIED = 0.62
"""Least weight share of common terms at which a denial counts."""
_NEAR = 4
_ROUNDED = 0.15


class Matched(NamedTuple):
    """Two figures of one dimension.

    Attributes:
        alike: how similar their scopes are, in [0, 1].
        agrees: whether both can be true.
        comparable: whether they measure the same thing."""

    first: Figure
    second: Figure
    alike: float
    agrees: bool
    comparable: bool


class Opposed(NamedTuple):
    """The difference of two statements: its kind, the words of the first, the words of the second."""

    kind: str
    first: str
    second: str


def matched(first: Statement, second: Statement, weights: Weights) -> Iterator[Matched]:
    """Return each pair of figures of two statements that measure the same."""
    for ours, our_scope in zip(first.figures, first.scopes, strict=True):
        for theirs, their_scope in zip(second.figures, second.scopes, strict=True):
            if _measure_the_same(ours, theirs):
                sides = Sides(first, second, our_scope, their_scope)
                alike = sides.alike(weights)
                comparable = alike >= LEAST_SHARED and sides.one_case() and _one_role(first, second, ours, theirs)
                yield Matched(ours, theirs, alike, _agree(ours, theirs, first, second), comparable)


def differing(found: list[Matched]) -> Iterator[Matched]:
    """Return the figures in the same role that cannot both be true, the most similar first."""
    if any({one.first.bound, one.second.bound} == {"upper", "lower"} and not one.agrees for one in found):
        return  # "less than 5 years" and "more than 10 years" are two different cases.
    ours = {one.first.first for one in found if one.agrees}
    theirs = {one.second.first for one in found if one.agrees}
    for one in sorted(found, key=_closeness):
        settled = one.first.first in ours or one.second.first in theirs
        if one.comparable and not one.agrees and not settled:
            yield one


def _closeness(match: Matched) -> tuple[float, int, list[str]]:
    """Return a sort key: the closest first, independent of the order of the texts."""
    first, second = match.first, match.second
    return -round(match.alike, 9), first.first + second.first, sorted([first.written, second.written])


def opposed(match: Matched) -> Opposed:
    """Return the difference of two figures."""
    dimension = match.first.dimension
    kind = "version" if dimension == "version" else "date" if dimension in DATED else "number"
    return Opposed(kind, match.first.written, match.second.written)


def denied(first: Statement, second: Statement, weights: Weights) -> Opposed | None:
    """Return what ``first`` denies and ``second`` affirms. None where one is about the past, a cell, or has "only"."""
    closed = second.negates or first.restricts or second.restricts or first.history or second.history
    if closed or first.is_cell or second.is_cell:
        return None
    if any(_affirmed(first, denial, second, weights) for denial in first.denials):
        return Opposed("negation", "denied", "affirmed")
    return None


def _affirmed(first: Statement, denial: Denial, second: Statement, weights: Weights) -> bool:
    if denial.lifts and not second.obliges:
        return False
    if second.obliges and not denial.lifts and not frozenset(denial.terms[:1]) & second.terms:
        return False
    if _other_figures(first, second):
        return False
    end = next(clause for clause in first.clauses if clause >= denial.place)
    ours = first.upto(end)
    clauses = (Sides(first, second, ours, second.upto(clause)) for clause in second.clauses)
    return any(_says_the_same(sides, denial, weights) for sides in clauses)


def _says_the_same(sides: Sides, denial: Denial, weights: Weights) -> bool:
    """Return whether the other side has the verb and all terms of the denial. "Outlet items cannot" is about less."""
    verb = frozenset(denial.terms[:2]) & (sides.theirs | sides.second.above)
    if not verb or sides.ours_only - light():
        return False
    return sides.alike(weights) >= LEAST_DENIED and sides.one_case(whatever=denial.always)


def _other_figures(first: Statement, second: Statement) -> bool:
    """Return whether figures make the statements two different cases: "not after 7 days", "after 3 days"."""
    ours, theirs = (frozenset((it.dimension, it.low, it.high) for it in one.figures) for one in (first, second))
    return bool(ours and theirs) and ours != theirs


def _measure_the_same(ours: Figure, theirs: Figure) -> bool:
    if ours.dimension != theirs.dimension:
        return False
    if ours.dimension == "count":
        return bool(ours.role & theirs.role)
    if ours.dimension in DATED and not (ours.role and theirs.role):
        return True
    return ours.role == theirs.role


def _one_role(first: Statement, second: Statement, ours: Figure, theirs: Figure) -> bool:
    """Return whether two figures measure the same thing in their statements."""
    if ours.per and theirs.per and ours.per != theirs.per:
        return False
    if ours.dimension in DATED and ours.role != theirs.role:
        return False
    ours_of, theirs_of = _alike(first, ours), _alike(second, theirs)
    if not (ours.high and theirs.high) and len(ours_of) + len(theirs_of) > 2:
        return False  # "free for orders of €45" has a condition.
    same_place = len(ours_of) == len(theirs_of) and ours_of.index(ours) == theirs_of.index(theirs)
    return same_place or bool(_near(first, ours) & _near(second, theirs))


def _alike(statement: Statement, figure: Figure) -> list[Figure]:
    return [other for other in statement.figures if other.dimension == figure.dimension]


def _near(statement: Statement, figure: Figure) -> frozenset[str]:
    before = statement.words[max(0, figure.first - _NEAR) : figure.first]
    return frozenset(before + statement.words[figure.last + 1 : figure.last + 1 + _NEAR]) - {""}


def _agree(ours: Figure, theirs: Figure, first: Statement, second: Statement) -> bool:
    """Return whether both figures can be true of the same thing."""
    if ours.year and theirs.year and ours.year != theirs.year:
        return False
    if ours.low <= theirs.high and theirs.low <= ours.high:
        return True
    near = abs(ours.low - theirs.low) <= _ROUNDED * max(ours.low, theirs.low)
    if near and "about" in {ours.bound, theirs.bound}:
        return True
    if ours.bound == theirs.bound and first.hedged == second.hedged:
        return False
    return _allows(ours, theirs) or _allows(theirs, ours)


def _allows(bound: Figure, said: Figure) -> bool:
    if bound.bound == "upper":
        return said.high <= bound.high
    return bound.bound == "lower" and said.low >= bound.low


# The search for contradictions: candidate pairs by shared terms, then the differences of each pair.
#
# Two statements are compared where they share most of their terms, by weight, and are about the same case. They are
# about two cases where each has an important word that the other lacks, or where a condition or the row of a table
# differs. The search prefers precision: it may miss contradictions.
#
# English alone is read: a text in another language states nothing here (``language_detection.no_rules`` says so).
#
# The work is bounded. All texts together have at most MOST_STATEMENTS statements, and each text gets its share. A
# statement has at most ``LONGEST`` tokens and ``MOST_FIGURES`` figures. A term of more than MOST_HOLDERS statements
# gives no candidate. Each statement is compared with MOST_CANDIDATES others. So the time is linear in the length of the
# texts.

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
        differs: the words of the first and of the second. Of a negation: "denied" and "affirmed".
    """

    first: Quote
    second: Quote
    kind: str
    differs: tuple[str, str]


def contradictions(texts: Sequence[str], idf: Mapping[str, float] | None = None) -> list[Contradiction]:
    """Return the contradictions between each two of ``texts``, in the order of their places.

    Args:
        texts: as they were retrieved, plain or Markdown.
        idf: weight of each term (``figures.term``), any scale; by default its rarity among the statements given.

    A statement that is in both texts contradicts neither. Case and white space do not count.
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
