"""Whether two statements of different texts oppose each other: another figure in the same role, or a denial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rag_harness.pipelines.reliability.stated_figures import Figure
from rag_harness.pipelines.reliability.statements import Denial, Statement
from rag_harness.pipelines.reliability.vocabulary import CONTRASTS, LIGHT

LEAST_SHARED = 0.58
"""Share, by weight, of two statements' terms that both have, at which they speak of the same."""
LEAST_AGREED = 0.45
"""The same for "the other text says this too", which only takes a conflict back."""
LIGHTNESS = 0.3
DENIED_SHARED = 0.62
_DATED = frozenset(("date", "clock", "day of the month", "year"))
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Weights:
    """How much each term says: its inverse frequency among the statements, less for a light word."""

    known: Mapping[str, float]
    unknown: float = 1.0

    def of(self, word: str) -> float:
        return self.known.get(word, self.unknown) * (LIGHTNESS if word in LIGHT else 1.0)

    def sum(self, words: frozenset[str]) -> float:
        return sum(map(self.of, sorted(words)))


class Opposed(NamedTuple):
    """What two statements differ in: the kind, and the two sayings."""

    kind: str
    first: str
    second: str


class Matched(NamedTuple):
    """Two figures of one dimension, how alike what is said of them, and whether they can both be true."""

    first: Figure
    second: Figure
    alike: float
    agrees: bool
    comparable: bool


def matched(first: Statement, second: Statement, weights: Weights) -> Iterator[Matched]:
    """Return each pair of figures that measure the same."""
    for ours in first.figures:
        for theirs in second.figures:
            if ours.dimension == theirs.dimension and _roles_meet(ours, theirs):
                sides = _Sides(first, second, _scope(first, ours), _scope(second, theirs))
                alike = sides.alike(weights)
                can = alike >= LEAST_SHARED and sides.one_case(weights) and _one_role(first, second, ours, theirs)
                yield Matched(ours, theirs, alike, _agree(ours, theirs, first, second), can)


def denied(first: Statement, second: Statement, weights: Weights) -> Opposed | None:
    """Return what ``first`` denies and ``second`` affirms."""
    if second.negates or first.is_cell or second.is_cell or second.restricts or first.restricts:
        return None
    for denial in first.denials:
        if _affirms(first, denial, second, weights):
            return Opposed("negation", " ".join(denial.terms[:6]), "affirmed")
    return None


def _affirms(first: Statement, denial: Denial, second: Statement, weights: Weights) -> bool:
    end = next(clause for clause in first.clauses if clause >= denial.place)
    ours = _upto(first, end)
    if denial.lifts and not second.obliges:
        return False
    if second.obliges and not denial.lifts and not set(denial.terms[:1]) & second.terms:
        return False
    for clause in second.clauses:
        sides = _Sides(first, second, ours, _upto(second, clause))
        verb = frozenset(denial.terms[:2]) & (sides.theirs | second.above)
        narrower = weights.sum(_strong(sides.ours - sides.theirs - second.above))
        if verb and not narrower and sides.alike(weights) >= DENIED_SHARED and sides.one_case(weights, denial.always):
            return not _figures_differ(first, second)
    return False


def _figures_differ(first: Statement, second: Statement) -> bool:
    """Return whether figures make the two speak of different cases: "not after 7 days", "after 3 days"."""
    ours, theirs = ({(figure.dimension, figure.low, figure.high) for figure in one.figures} for one in (first, second))
    return bool(ours and theirs and ours != theirs)


class _Sides:
    """The terms that two statements are compared by."""

    def __init__(self, first: Statement, second: Statement, ours: frozenset[str], theirs: frozenset[str]) -> None:
        self.first, self.second, self.ours, self.theirs = first, second, ours, theirs

    def alike(self, weights: Weights) -> float:
        """Return the share of the weight that both have, in [0, 1]; 0 where hardly anything is said."""
        shared = (self.ours & (self.theirs | self.second.above)) | (self.theirs & self.first.above)
        if len(shared) < 2 or not _strong(shared):
            return 0.0
        ours_only = self.ours - self.theirs - self.second.above
        theirs_only = self.theirs - self.ours - self.first.above
        both = weights.sum(shared)
        return both / (both + (weights.sum(ours_only) + weights.sum(theirs_only)) / 2)

    def one_case(self, weights: Weights, always: bool = False) -> bool:
        """Return whether nothing says that the two speak of different subjects or under different conditions."""
        ours_only = _strong(self.ours - self.theirs - self.second.above)
        theirs_only = _strong(self.theirs - self.ours - self.first.above)
        if ours_only and theirs_only:
            return False
        if not always and (self._conditional(self.first, self.second) or self._conditional(self.second, self.first)):
            return False
        if not self._rows_meet():
            return False
        return not any(self._contrast(group) for group in CONTRASTS)

    def _conditional(self, one: Statement, other: Statement) -> bool:
        inside = frozenset(filter(None, (one.words[place] for place in one.conditions)))
        figures = [figure for figure in one.figures if figure.first in one.conditions]
        there = {(figure.dimension, figure.low) for figure in other.figures}
        unknown = any((figure.dimension, figure.low) not in there for figure in figures)
        return unknown or bool(_strong(inside - other.terms - other.above))

    def _contrast(self, group: frozenset[str]) -> bool:
        ours, theirs = self.ours & group, self.theirs & group
        return (ours - theirs - self.second.above) != (theirs - ours - self.first.above)

    def _rows_meet(self) -> bool:
        rows = self.first.row | self.second.row
        if not rows:
            return True
        if self.first.is_cell and self.second.is_cell:
            return self.first.row == self.second.row and bool(self.first.above & self.second.above)
        return rows <= (self.theirs if self.first.is_cell else self.ours)


def _strong(words: frozenset[str]) -> frozenset[str]:
    return words - LIGHT


def _scope(statement: Statement, figure: Figure) -> frozenset[str]:
    """Return the terms up to the end of the figure's clause: what trails behind is another matter."""
    ends = [clause for clause in statement.clauses if clause > figure.last]
    scope = _upto(statement, ends[0])
    return scope if len(_strong(scope)) > 1 or len(ends) == 1 else _upto(statement, ends[1])


def _upto(statement: Statement, end: int) -> frozenset[str]:
    return frozenset(filter(None, statement.words[:end]))


def _roles_meet(ours: Figure, theirs: Figure) -> bool:
    if ours.dimension == "count":
        return bool(ours.role & theirs.role)
    if ours.dimension == "version":
        return ours.role == theirs.role
    return ours.dimension not in _DATED or ours.role == theirs.role or not (ours.role and theirs.role)


def _one_role(first: Statement, second: Statement, ours: Figure, theirs: Figure) -> bool:
    """Return whether the two figures stand for the same thing in their statements."""
    if ours.per != theirs.per and ours.per and theirs.per:
        return False
    if {ours.bound, theirs.bound} == {"upper", "lower"}:
        return False
    if ours.dimension in _DATED and ours.role != theirs.role:
        return False
    if not (ours.high and theirs.high) and _thresholds(first, ours) + _thresholds(second, theirs):
        return False
    return _place_of(first, ours) == _place_of(second, theirs) or _near(first, ours) & _near(second, theirs) != _NONE


def _thresholds(statement: Statement, figure: Figure) -> int:
    """Return how many other amounts a statement names: "free for orders of €45" is free on a condition."""
    return sum(other.dimension == figure.dimension for other in statement.figures) - 1


def _place_of(statement: Statement, figure: Figure) -> tuple[int, int]:
    """Return which figure of its dimension it is, and of how many."""
    alike = [other for other in statement.figures if other.dimension == figure.dimension]
    return alike.index(figure), len(alike)


def _near(statement: Statement, figure: Figure) -> frozenset[str]:
    words = statement.words[max(0, figure.first - 4) : figure.first] + statement.words[figure.last + 1 : figure.last + 5]
    return frozenset(filter(None, words))


def _agree(ours: Figure, theirs: Figure, first: Statement, second: Statement) -> bool:
    """Return whether both figures can be true of one thing."""
    if ours.year and theirs.year and ours.year != theirs.year:
        return False
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    if overlap or "about" in {ours.bound, theirs.bound} and abs(ours.low - theirs.low) <= 0.15 * max(ours.low, theirs.low):
        return True
    if ours.bound == theirs.bound and first.hedged == second.hedged:
        return False
    return any(_allows(one, other) for one, other in ((ours, theirs), (theirs, ours)))


def _allows(bound: Figure, value: Figure) -> bool:
    if bound.bound == "upper":
        return value.high <= bound.high
    return bound.bound == "lower" and value.low >= bound.low
