"""Agreement of raters: kappa, alpha, correlation, panels, and variance components of judgements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, UndefinedError, Values, finite, floats, pairs_of

Level: TypeAlias = Literal["nominal", "interval"]
"""Whether values are categories, or numbers with distances."""
Items: TypeAlias = Sequence[Sequence[float]]
"""The values of each item, any number of them, in any order."""


def krippendorff_alpha(items: Items, level: Level = "nominal") -> float:
    """Return 1 - disagreement within items / expected disagreement (Krippendorff 2011); 1 is perfect, 0 is chance.

    Items with fewer than two values carry no information on agreement and are left out.

    Raises:
        UndefinedError: no item has two values, or all values are equal.
    """
    rated = [floats(item, "krippendorff_alpha") for item in items if len(item) > 1]
    if not rated:
        raise UndefinedError("no item has two values")
    everything = np.concatenate(rated)
    n = len(everything)
    by_chance = _disagreement(everything, level) / (n - 1)
    if not by_chance:
        raise UndefinedError(f"everybody says {everything[0]:g} of everything")
    observed = sum(_disagreement(item, level) / (len(item) - 1) for item in rated)
    return float(1 - observed / by_chance)


def flip_rate(items: Items, threshold: float = 0.5) -> float:
    """Return the probability that two values of an item are on different sides of ``threshold``: the mean over items.

    Raises:
        UndefinedError: no item has two values.
    """
    rated = [(floats(item, "flip_rate") >= threshold).astype(float) for item in items if len(item) > 1]
    if not rated:
        raise UndefinedError("no item has two values")
    pairs = [_disagreement(item, "nominal") / (len(item) * (len(item) - 1)) for item in rated]
    return float(np.mean(pairs))


def _disagreement(values: Floats, level: Level) -> float:
    """Return the sum over ordered pairs of 1 where they differ, or of their squared distance."""
    n = len(values)
    if level == "nominal":
        _, counts = np.unique(values, return_counts=True)
        return float(n * n - (counts**2).sum())
    centred = values - values[0]
    return float(2 * (n * (centred**2).sum() - centred.sum() ** 2))


def panel_values(rule: str, values: npt.ArrayLike) -> Floats:
    """Return the panel's value of each item, shape (items,); NaN where a judge has none.

    Args:
        rule: ``majority`` is 1 where most judges say more than 0.5, 0 where most say less, and 0.5 where they are
            even. ``median`` and ``mean`` are those of their values.
        values: shape (judges, items), NaN where a judge has no value.
    """
    said = np.asarray(values, np.float64)
    # No function passes over a NaN: a panel without one of its judges has no value.
    if rule == "majority":
        return np.asarray((1 + np.sign(np.sign(said - 0.5).sum(axis=0))) / 2)
    return np.asarray(np.median(said, axis=0) if rule == "median" else said.mean(axis=0))


class Votes(NamedTuple):
    """How alike the errors of judges are. ``rho`` is the mean correlation of two judges' errors; ``n_eff`` is the
    number of independent judges that they are worth, from 1 to their number."""

    rho: float
    n_eff: float


def independent_votes(errors: Sequence[npt.ArrayLike]) -> Votes:
    """Return J / (1 + (J - 1) rho) of the errors of J judges on the same items (Kish's design effect).

    Args:
        errors: for each judge its scores minus people's labels, shape (items,). A negative mean correlation counts as
            0, for J judges are not more than J votes.

    Raises:
        UndefinedError: there are fewer than two judges or items, or a judge's errors are all equal.
    """
    rows = np.asarray(errors, np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 2:
        raise UndefinedError("it takes two judges and two labels")
    if (np.ptp(rows, axis=1) == 0).any():
        raise UndefinedError("the errors of a judge are all equal")
    between = np.asarray(np.corrcoef(rows))
    rho = float(np.mean([between[a, b] for a, b in combinations(range(len(rows)), 2)]))
    judges = len(rows)
    return Votes(rho, float(judges / (1 + (judges - 1) * max(rho, 0.0))))


def mid_ranks(values: Floats) -> Floats:
    """Return the rank of each value from 1. Equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place])


# Agreement between two raters of the same items: a judge and people, or two people.
#
# Each function takes two flat lists. The first is the reference for the second. It raises UndefinedError where the
# statistic is undefined for the values: ``means.estimate`` turns that into a reason.


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


class Components(NamedTuple):
    """Variances of a nested design. Each is None where the design does not define it; ``reasons`` say why, by name.

    The estimates are unbiased, so they may be below 0 where the truth is near 0; ``shares`` and ``error_of`` count
    those as 0. ``pipeline`` contains the judge's variance too, where each answer was judged once.
    """

    queries: int
    repeats: int
    judgements: int
    mean: float
    query: float | None
    pipeline: float | None
    judge: float | None
    reasons: dict[str, str]

    def shares(self) -> dict[str, float]:
        """Return each defined variance as a share of their sum; 0 for each where nothing varies."""
        named = {"query": self.query, "pipeline": self.pipeline, "judge": self.judge}
        known = {name: max(0.0, value) for name, value in named.items() if value is not None}
        total = sum(known.values())
        return {name: value / total if total else 0.0 for name, value in known.items()}

    def error_of(self, queries: int, repeats: int = 1, judgements: int = 1) -> float:
        """Return the standard error of the mean of a run with these numbers of queries, answers and judgements.

        It is the square root of query / Q + pipeline / QR + judge / QRJ. The largest term says which number to
        increase.

        Raises:
            ValueError: a number is below 1.
            UndefinedError: the variance between queries is not known.
        """
        if min(queries, repeats, judgements) < 1:
            raise ValueError(f"error_of needs numbers of 1 or more; got {queries}, {repeats}, {judgements}.")
        if self.query is None:
            raise UndefinedError(self.reasons["query"])
        spread = [max(0.0, value or 0.0) for value in (self.query, self.pipeline, self.judge)]
        counts = np.cumprod([queries, repeats, judgements])
        return float(np.sqrt(sum(value / count for value, count in zip(spread, counts, strict=True))))


def variance_components(values: Sequence[Sequence[Sequence[float]]] | npt.NDArray[np.float64]) -> Components:
    """Return the variance components of values by query, answer and judgement, shape (Q, R, J): nested ANOVA.

    Mean squares are set equal to their expectations (Searle, Casella & McCulloch 1992, 3.6): E(MS_judge) = j,
    E(MS_pipeline) = j + J·p, E(MS_query) = j + J·p + JR·q.

    Raises:
        ValueError: the values have no such shape, or one is NaN or infinite: leave out queries that lack a value.
    """
    block = _block(values)
    q, r, j = block.shape
    answers = block.mean(axis=2)
    queries = answers.mean(axis=1)
    judge = _mean_square(block - answers[:, :, None], q * r * (j - 1), 1)
    within = _mean_square(answers - queries[:, None], q * (r - 1), j)
    between = _mean_square(queries - queries.mean(), q - 1, r * j)
    found = {
        "judge": judge,
        "pipeline": None if within is None else (within - (judge or 0.0)) / j,
        # With one answer for each query, the variance between queries contains all others: they cannot be separated.
        "query": None if between is None or within is None else (between - within) / (r * j),
    }
    reasons = {name: why for name, why in _reasons(q, r).items() if found[name] is None}
    return Components(q, r, j, float(block.mean()), **found, reasons=reasons)


def _reasons(queries: int, repeats: int) -> dict[str, str]:
    once = "each query was answered once (R = 1), so that queries and pipeline cannot be told apart"
    return {
        "query": "one query only" if queries == 1 and repeats > 1 else once,
        "pipeline": once,
        "judge": "each answer was judged once (J = 1), so that pipeline holds the judge's noise too",
    }


def _mean_square(deviations: Floats, freedom: int, values: int) -> float | None:
    """Return the mean square of deviations of means over ``values`` values each; None without a degree of freedom."""
    return float(values * (deviations**2).sum() / freedom) if freedom else None


def _block(values: Sequence[Sequence[Sequence[float]]] | npt.NDArray[np.float64]) -> Floats:
    try:
        block = np.asarray(values, dtype=np.float64)
    except ValueError:
        raise ValueError(
            "variance_components needs as many answers of each query, and judgements of each answer."
        ) from None
    if block.ndim != 3 or not block.size:
        raise ValueError(f"variance_components needs values by query, answer and judgement; got shape {block.shape}.")
    return finite(block, "variance_components", "Leave out such queries.")
