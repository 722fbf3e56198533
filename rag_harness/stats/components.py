"""Variance components: between queries, between answers to one query, between judgements of one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, UndefinedError, finite


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
