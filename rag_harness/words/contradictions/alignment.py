"""Whether two statements are about the same case: the weight share of their common terms, and what differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rag_harness.words.contradictions.statements import Statement
from rag_harness.words.contradictions.vocabulary import contrasts, light

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
