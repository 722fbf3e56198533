"""Whether two statements contradict each other: another figure in the same role, or a denial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rag_harness.words.contradictions.alignment import Sides, Weights
from rag_harness.words.contradictions.denials import Denial
from rag_harness.words.contradictions.figure import DATED, Figure
from rag_harness.words.contradictions.statements import Statement
from rag_harness.words.contradictions.vocabulary import light

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
        comparable: whether they stand for the same thing."""

    first: Figure
    second: Figure
    alike: float
    agrees: bool
    comparable: bool


class Opposed(NamedTuple):
    """The difference of two statements: its kind, what the first says, what the second says."""

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
    """Return whether two figures stand for the same thing in their statements."""
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
