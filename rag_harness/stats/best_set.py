"""Which of many arms are shown not to be the best, from values of all of them on the same units. Pure.

All pairs are tested at once, by the sum of their paired differences over the root of the sum of their squares. If two
arms do not differ, the difference of a unit has either sign equally often: so the largest of all these numbers is held
against what it is when the signs of all units are drawn at random (a permutation test of the maximum; Westfall & Young
1993). What is shown is taken out, and the rest is tested again (Romano & Wolf 2005, Econometrica 73). So all that is
said is right together with ``confidence``. It is a test of one look: an arm is not to be looked at again when more
units have come. ``racing`` may look at any time, and sees less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, checked_confidence

_AT_ONCE = 2_000_000
"""Most numbers of a block of draws."""
_SAME = 1e-9


def shown_worse(values: Floats, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return which arm is shown to be better than which: shape (K, K), [i, j] says that i is better than j.

    Args:
        values: shape (units, K), higher is better. Units are drawn independently: where several questions belong
            together, a unit is their mean.
        confidence: chance that all that is said is right.
        draws: number of random signs of all units.
        seed: of these.

    Raises:
        ValueError: the values are not finite, or no matrix.
    """
    array = np.asarray(values, float)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"values are a matrix of finite numbers, units by arms; got shape {array.shape}.")
    n, count = array.shape
    shown = np.zeros((count, count), bool)
    if n < 2 or count < 2:
        return shown
    products = array.T @ array
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    tested = squares > _SAME
    scale = np.where(tested, 1 / np.sqrt(np.where(tested, squares, 1.0)), 0.0)
    sums = array.sum(axis=0)
    seen = (sums[:, None] - sums) * scale
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, n))
    drawn = signs @ array
    while True:
        open_ = tested & ~shown
        limit = np.quantile(_largest(drawn, np.where(open_, scale, 0.0)), checked_confidence(confidence))
        new = open_ & (seen > limit + _SAME)
        if not new.any():
            return shown
        shown |= new


def _largest(drawn: Floats, scale: Floats) -> Floats:
    """Return the largest number of each draw, shape (draws,)."""
    count = drawn.shape[1]
    step = max(1, _AT_ONCE // (count * count))
    found = [
        ((block[:, :, None] - block[:, None, :]) * scale).max(axis=(1, 2))
        for block in (drawn[start : start + step] for start in range(0, len(drawn), step))
    ]
    return np.concatenate(found)
