"""MaxSim of token vectors: the part of late interaction that is kept, and under the digest of this file.

So nothing stands here that decides no score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.types import TokenVectors

DECIMALS = 6
"""Places of every score that is compared, stored or returned. Sums in single precision differ from the seventh on with
the number of threads and with what else is in a batch."""
Floats = npt.NDArray[np.float64]


def max_sims(query: TokenVectors, documents: Sequence[TokenVectors]) -> Floats:
    """Return the mean over the query's tokens of the best cosine with a token of each document, shape (n,).

    In double precision and rounded to ``DECIMALS``: the same for any number of threads.
    """
    wanted = query.astype(np.float64)
    sims = [(wanted @ tokens.astype(np.float64).T).max(axis=1).mean() for tokens in documents]
    return rounded(sims)


def rounded(values: npt.ArrayLike) -> Floats:
    """Return values at ``DECIMALS`` places."""
    exact: Floats = np.asarray(values, np.float64)
    return exact.round(DECIMALS) + 0.0  # there is no minus zero
