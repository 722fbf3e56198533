"""What several raters say together: one value an item, and how many independent votes they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, UndefinedError


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
