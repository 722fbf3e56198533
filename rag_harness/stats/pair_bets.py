"""Bets between all pairs of arms that are measured on the same units, and how much evidence a claim about an arm needs.

For each pair a bettor bets that arm i is better than arm j: wealth *= 1 + stake * (x_i - x_j). There is one wealth for
each stake, and their mean is the pair's. If j is one of the best, every pair against j is a fair or a losing game, and
so is their mean. It becomes 20 times richer with a probability of at most 1/20, however often one looks (Ville's
inequality; bets on bounded means: Waudby-Smith & Ramdas 2023, arXiv 2010.09686). Other bets are that arm i is not more
than ``margin`` below arm j: wealth *= 1 + stake * (margin + x_i - x_j).

Bets are about all units like these. Bets without replacement (``betting``) would be about these units only, see
``racing``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats

Which = npt.NDArray[np.bool_]
"""Some of the arms, shape (K,)."""
STAKES: Floats = np.array([0.1, 0.2, 0.4, 0.8])[:, None, None]
"""Parts of the money that are staked. The best one is gap / variance: small for close arms, large where most tie."""
RICHEST, _POOREST = 1e100, 1e-100
"""Wealth is held below the first, and is given up below the second. Neither makes a game better than fair."""


class PairBets:
    """The wealths of all bets between K arms.

    Args:
        count: number of arms.
        margin: the margin of the other bets, in widths of the values; 0 where none are made.
    """

    def __init__(self, count: int, margin: float) -> None:
        self._margin = margin
        # Axes: stake, the arm that is bet on, the arm that it is bet against.
        self._better: Floats = np.ones((len(STAKES), count, count))
        self._near: Floats | None = np.ones_like(self._better) if margin else None

    def take(self, values: Floats, among: Which) -> None:
        """Settle the bets of the next unit, by values from 0 to 1, shape (K,), ``among`` those measured on it."""
        pairs = among[:, None] & among
        gains = np.where(pairs, values[:, None] - values, 0.0)
        self._better = _after(self._better, gains)
        if self._near is not None:
            self._near = _after(self._near, np.where(pairs, gains + self._margin, 0.0))

    @property
    def better(self) -> Floats:
        """The evidence that arm i is better than arm j, shape (K, K)."""
        return np.asarray(self._better.mean(axis=0))

    def near(self, best: Which) -> Floats:
        """Return the evidence that each arm is good enough, shape (K,): the weakest against one that may be the best.

        Without a margin it is infinite: no claim of that kind is made, so none can be wrong.
        """
        if self._near is None:
            return np.full(len(best), np.inf)
        near = self._near.mean(axis=0)
        np.fill_diagonal(near, np.inf)
        return np.asarray(near[:, best].min(axis=1))


def against(better: Floats, allowed: Which) -> Floats:
    """Return the evidence that each arm is not the best of those allowed, shape (K,): the mean of all others' bets."""
    others = better[allowed].sum(axis=0) - 1  # without the arm against itself
    return np.asarray(others / max(np.count_nonzero(allowed) - 1, 1))


def needed(weakest: Floats, allowed: Which, enough: float) -> Floats:
    """Return the evidence that the claims about each arm need to be right together, shape (K,).

    Means of wealths that are fair are fair, too. So claims are tested by closure (Vovk & Wang 2021, Annals of
    Statistics 49): the mean with the evidence about any other arms must be enough. A claim has to make up for what the
    others fall short of it. No arm is both one of the best and more than the margin below the best, so each has at most
    one wrong claim, and both kinds of claims share this correction.

    Args:
        weakest: the weaker evidence of the two claims about each arm, shape (K,).
        allowed: the arms that claims are about.
        enough: evidence that one claim alone needs: 20 for 95 %.
    """
    short = np.where(allowed, np.maximum(enough - weakest, 0.0), 0.0)
    return np.asarray(enough + short.sum() - short)


def _after(wealth: Floats, gains: Floats) -> Floats:
    now = np.minimum(wealth * (1 + STAKES * gains), RICHEST)
    return np.where(now < _POOREST, 0.0, now)
