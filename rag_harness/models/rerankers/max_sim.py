"""MaxSim of token vectors: the score of late interaction that is stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.types import TokenVectors

DECIMALS = 6
"""Decimal places of every score that is compared, stored or returned. Sums in single precision differ from the seventh
place on, depending on the number of threads and on the batch."""
MaxSims = npt.NDArray[np.float64]


def max_sims(query: TokenVectors, documents: Sequence[TokenVectors]) -> MaxSims:
    """Return the mean over the query's tokens of the best cosine with a token of each document, shape (n,).

    Computed in double precision and rounded to ``DECIMALS``, so that the number of threads does not matter.
    """
    wanted = query.astype(np.float64)
    sims = [(wanted @ tokens.astype(np.float64).T).max(axis=1).mean() for tokens in documents]
    return rounded(sims)


def rounded(values: npt.ArrayLike) -> MaxSims:
    """Return values rounded to ``DECIMALS`` places."""
    exact: MaxSims = np.asarray(values, np.float64)
    return exact.round(DECIMALS) + 0.0  # adding 0.0 turns -0.0 into 0.0
