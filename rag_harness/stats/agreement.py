"""Agreement between two raters of the same items: a judge and people, or two people.

Each function takes two flat lists. The first is the reference for the second. It raises UndefinedError where the
statistic is undefined for the values: ``estimate`` turns that into a reason.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rag_harness.stats.inputs import Floats, UndefinedError, Values, floats, pairs_of
from rag_harness.stats.ranks import mid_ranks


class Confusion(NamedTuple):
    """The confusion matrix: the first letter says whether both agree, the second is the second rater's verdict."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


def accuracy(truth: Values, verdicts: Values) -> float:
    """Return the share of items with equal verdicts."""
    first, second = pairs_of(truth, verdicts, "accuracy")
    return float(np.mean(first == second))


def cohen_kappa(truth: Values, verdicts: Values) -> float:
    """Return the agreement beyond chance, in [-1, 1]; chance follows from each rater's category shares (Cohen 1960)."""
    first, second = pairs_of(truth, verdicts, "cohen_kappa")
    categories = np.union1d(first, second)
    by_chance = sum(np.mean(first == category) * np.mean(second == category) for category in categories)
    if len(categories) == 1:
        raise UndefinedError(f"both say {categories[0]:g} of everything")
    return float((np.mean(first == second) - by_chance) / (1 - by_chance))


def weighted_kappa(truth: Values, ratings: Values) -> float:
    """Return kappa with squared distances as weights of disagreements (Cohen 1968): for ratings on a scale."""
    first, second = pairs_of(truth, ratings, "weighted_kappa")
    by_chance = first.var() + second.var() + (first.mean() - second.mean()) ** 2
    if not by_chance:
        raise UndefinedError(f"both say {first[0]:g} of everything")
    return float(1 - np.mean((first - second) ** 2) / by_chance)


def auroc(truth: Values, scores: Values) -> float:
    """Return the probability that a 1 scores above a 0; equal scores count one half (Hanley 1982).

    Raises:
        ValueError: a truth is neither 0 nor 1.
        UndefinedError: all items are of one class.
    """
    labels, values = pairs_of(truth, scores, "auroc")
    positive = _verdicts(labels, "auroc") == 1
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        raise UndefinedError(f"one class only: every label is {labels[0]:g}")
    return float((mid_ranks(values)[positive].sum() - n * (n + 1) / 2) / (n * m))


def pearson(first: Values, second: Values) -> float:
    """Return Pearson's linear correlation, in [-1, 1]."""
    x, y = _varying(first, second, "pearson")
    return float(np.clip(_unit(x) @ _unit(y), -1, 1))


def spearman(first: Values, second: Values) -> float:
    """Return Spearman's rank correlation, in [-1, 1]. Ties share their mean rank."""
    x, y = _varying(first, second, "spearman")
    return pearson(mid_ranks(x), mid_ranks(y))


def f1(truth: Values, verdicts: Values) -> float:
    """Return the harmonic mean of precision and recall of the verdict 1."""
    found = confusion(truth, verdicts)
    either = 2 * found.true_positive + found.false_positive + found.false_negative
    if not either:
        raise UndefinedError("neither says 1 of anything")
    return 2 * found.true_positive / either


def confusion(truth: Values, verdicts: Values) -> Confusion:
    """Return the confusion matrix.

    Raises:
        ValueError: a value is neither 0 nor 1.
    """
    first, second = (_verdicts(values, "confusion") == 1 for values in pairs_of(truth, verdicts, "confusion"))
    cells = (first & second, ~first & second, first & ~second, ~first & ~second)
    return Confusion(*(int(cell.sum()) for cell in cells))


def _unit(values: Floats) -> Floats:
    # Values are scaled first: the square of 1e-200 would be 0, and that of 1e200 infinite.
    centred = values / np.abs(values).max()
    centred = centred - centred.mean()
    centred = centred / np.abs(centred).max()
    return np.asarray(centred / np.sqrt(centred @ centred))


def _varying(first: Values, second: Values, who: str) -> tuple[Floats, Floats]:
    x, y = pairs_of(first, second, who)
    if len(x) == 1:
        raise UndefinedError("one item only")
    for values, whose in ((x, "first"), (y, "second")):
        if values.min() == values.max():
            raise UndefinedError(f"the {whose} says {values[0]:g} of everything")
    return x, y


def _verdicts(values: Floats, who: str) -> Floats:
    other = floats(values, who)[(values != 0) & (values != 1)]
    if len(other):
        raise ValueError(f"{who} needs verdicts, 0 or 1; got {other[0]:g}.")
    return values
