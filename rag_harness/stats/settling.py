"""How many cases would settle what is not settled."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil, isclose, log, log1p, sqrt
from statistics import NormalDist

from rag_harness.stats.clusters import cluster_sums, standard_error
from rag_harness.stats.inputs import Values, checked, floats


def cases_to_settle(gap: float, spread: float, confidence: float = 0.95, power: float = 0.8) -> int | None:
    """Return how many cases in all are needed to tell a mean from a threshold ``gap`` away, with a chance of ``power``.

    n = ((z_confidence + z_power) · spread / gap)², rounded up: the normal approximation, one-sided. ``spread`` is the
    standard deviation of a case, in the unit of ``gap``. None where the gap is 0: at exactly the threshold no number
    would.
    """
    if isclose(gap, 0, abs_tol=1e-12):
        return None
    z = sum(NormalDist().inv_cdf(checked(share)) for share in (confidence, power))
    return ceil(round((z * spread / gap) ** 2, 6))


def more_to_settle(n: int, gap: float, reach: float, spread: float, confidence: float = 0.95) -> int | None:
    """Return how many cases more are needed where a bound lies ``reach`` from the mean of ``n``, beyond the threshold.

    That is what ``cases_to_settle`` says, and at least as many as narrow the bound itself to the gap: it shrinks with
    the square root of n. Where all values are the best of a share, with n: it is then (1 - confidence)^(1/n).
    """
    needed = cases_to_settle(gap, spread, confidence)
    if needed is None:
        return None
    if not spread:
        return max(ceil(log(1 - checked(confidence)) / log1p(-min(abs(gap), 1 - 1e-12))) - n, 1)
    return max(needed, ceil(n * max(reach / abs(gap), 1) ** 2), n + 1) - n


def quantile_to_settle(n: int, below: float, share: float, confidence: float = 0.95) -> int | None:
    """Return how many cases more tell whether ``share`` of cases lie below a threshold where ``below`` of ``n`` do.

    At least so many as bound a quantile at all: ln(1 - confidence) / ln(share), 59 for the 95 % one.
    """
    needed = cases_to_settle(below - share, sqrt(below * (1 - below)), confidence)
    if needed is None:
        return None
    least = ceil(log(1 - checked(confidence)) / log(max(share, 1 - share)))
    return max(needed - n, least - n, 1)


def spread_of(values: Values, clusters: Sequence[Hashable] | None = None) -> float:
    """Return the standard deviation of a case, in the unit of the values: with clusters, what it counts as."""
    array = floats(values, "spread_of")
    sums = cluster_sums(array, clusters)
    return standard_error(sums) * sqrt(len(array)) if len(sums.sizes) > 1 else 0.0
