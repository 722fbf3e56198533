"""Sequential tests by betting, valid after every case, and races between arms on the same units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, checked_confidence
from rag_harness.stats.means import ValueRange

# A sequential test of whether the mean of a fixed set of cases is above a threshold. It is valid after every case.
#
# It bets against "the mean is at most the threshold". In a fair game a bettor becomes 20 times richer with a
# probability of at most 1/20, however often one looks (Ville's inequality). Cases come in random order without
# replacement. So under that hypothesis the mean of the next case is at most (N·threshold - sum so far) / (N - n)
# (Waudby-Smith & Ramdas 2020, NeurIPS 33; 2023, arXiv 2010.09686, section 5). The money is divided among several
# stakes. That is a fair game too, and no single stake has to be chosen.

ThresholdSide = Literal["above", "below"]
_STAKES = np.array([0.3, 0.5, 0.7, 0.9])
"""Stakes as parts of the largest possible loss in one bet. Small ones win near the threshold, large ones win soon."""


class MeanTest:
    """Takes a population's values one by one, in random order, until it knows whether their mean is above a threshold.

    Args:
        threshold: threshold for the mean.
        population: number of all cases.
        span: lowest and highest possible value.
        confidence: confidence of either side. To look after every case does not reduce it.

    Raises:
        ValueError: the span is not finite, the threshold lies outside it, or the population is empty.
    """

    def __init__(self, threshold: float, population: int, span: ValueRange = (0, 1), confidence: float = 0.95) -> None:
        if not (np.isfinite(span).all() and span[0] < span[1]):
            raise ValueError(f"a stop rule needs values between two finite ends; got {span[0]:g} to {span[1]:g}.")
        if not span[0] <= threshold <= span[1]:
            raise ValueError(f"no mean of values between {span[0]:g} and {span[1]:g} is compared with {threshold:g}.")
        if population < 1:
            raise ValueError(f"a population has 1 case or more; got {population}.")
        self._low, self._width = span[0], span[1] - span[0]
        self._threshold, self._population = (threshold - self._low) / self._width, population
        self._enough = 1 / (1 - checked_confidence(confidence))
        self._above: Floats = np.ones(len(_STAKES))
        self._below: Floats = np.ones(len(_STAKES))
        self.n: int = 0
        self._sum = 0.0
        self.shown: ThresholdSide | None = None

    def add(self, value: float) -> None:
        """Take a value.

        Raises:
            ValueError: the value is NaN or outside the span, or all cases of the population were taken.
        """
        scaled = (value - self._low) / self._width
        if not 0 <= scaled <= 1:
            raise ValueError(f"values lie between {self._low:g} and {self._low + self._width:g}; got {value:g}.")
        if self.n == self._population:
            raise ValueError(f"the population has {self._population} cases only.")
        expected = (self._population * self._threshold - self._sum) / (self._population - self.n)
        if 0 < expected < 1:
            self._bet(scaled - expected, expected)
        self._sum, self.n = self._sum + scaled, self.n + 1

    def _bet(self, gain: float, expected: float) -> None:
        self._above = self._above * (1 + _STAKES * gain / expected)
        self._below = self._below * (1 - _STAKES * gain / (1 - expected))
        if self.shown is None and self._above.mean() >= self._enough:
            self.shown = "above"
        elif self.shown is None and self._below.mean() >= self._enough:
            self.shown = "below"

    @property
    def certain(self) -> tuple[float, float]:
        """The lowest and the highest possible mean: all remaining cases have the worst value, or the best."""
        left = self._population - self.n
        ends = (self._sum / self._population, (self._sum + left) / self._population)
        return self._low + self._width * ends[0], self._low + self._width * ends[1]


# Bets between all pairs of arms that are measured on the same units, and how much evidence a claim about an arm needs.
#
# For each pair a bettor bets that arm i is better than arm j: wealth *= 1 + stake * (x_i - x_j). There is one wealth
# for each stake, and their mean is the pair's. If j is one of the best, every pair against j is a fair or a losing
# game, and so is their mean. It becomes 20 times richer with a probability of at most 1/20, however often one looks
# (Ville's inequality; bets on bounded means: Waudby-Smith & Ramdas 2023, arXiv 2010.09686). Other bets are that arm i
# is not more than ``margin`` below arm j: wealth *= 1 + stake * (margin + x_i - x_j).
#
# Bets are about all units like these. Bets without replacement (``MeanTest``) would be about these units only, see
# ``Race``.

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


# A race between arms that are measured on the same units: which is the best, at any time of looking. Pure.
#
# An arm leaves when bets show that it is not the best. All claims of a race are right together with ``confidence``, in
# whatever order and however often one looks (``PairBets`` has the bets and the correction).
#
# The claims are about all units like these. Bets without replacement (``MeanTest``) would be about these units only:
# after the last one they always name a best, since the means of these units are then known. But that arm is often not
# the best for the next questions, and a tuner chooses for those. In 1,000 simulations with one best of 16 arms, .02
# ahead, the best had left in 35 % after 500 questions; in a race it had left in none (``benchmarks/racing.py``).
#
# Close arms need many units by any valid test: about (2.8 * sd / gap)², with the sd of their paired differences. A race
# saves the calls of arms that are clearly worse. To save more, a search may set arms aside: their claims stay open.

RaceState = Literal["open", "one left", "equal within the margin"]


class EliminatedArm(NamedTuple):
    """When an arm was shown not to be the best: after how many units, and which arm had the best mean then."""

    after: int
    better: str


class Race:
    """A race of K arms, measured on the same units, which come in one random order.

    A unit is drawn independently: a question, or a page or conversation with its questions. The caller gives
    one value for each arm and unit. With the mean of a page's questions all pages count alike. With their sum divided
    by the most questions of a page, all questions count alike; the margin then has to be scaled in the same way.

    ``left`` are the arms still in the race, ``gone`` the eliminated ones: they are not the best, at level
    ``confidence``. ``good_enough`` are the arms in the race that are at most ``margin`` below the best, at the same
    level. ``n`` is the number of units.

    Which arms are set aside, and when the race ends, may depend on all values so far.

    Args:
        arms: names of the arms.
        margin: an arm so far below the best is good enough, in the unit of the values; 0 where only the best is.
        confidence: chance that all claims are right, however often one looks and whenever the race is ended.
        span: lowest and highest possible value.

    Raises:
        ValueError: the list of arms is empty, two arms have one name, the span is not finite, or the margin is not
            within it.
    """

    def __init__(
        self, arms: Sequence[str], *, margin: float = 0.0, confidence: float = 0.95, span: ValueRange = (0, 1)
    ) -> None:
        if not arms or len(set(arms)) < len(arms):
            raise ValueError(f"a race has arms of different names; got {list(arms)}.")
        if not (np.isfinite(span).all() and span[0] < span[1]):
            raise ValueError(f"a race needs values between two finite ends; got {span[0]:g} to {span[1]:g}.")
        width = span[1] - span[0]
        if not 0 <= margin < width:
            raise ValueError(f"a margin is from 0 to below {width:g}, the width of the values; got {margin:g}.")
        self.n: int = 0
        self.gone: dict[str, EliminatedArm] = {}
        self._arms, self._span, self._margin = tuple(arms), span, margin / width
        self._enough = 1 / (1 - checked_confidence(confidence))
        count = len(arms)
        # Open: neither gone nor withdrawn.
        self._open, self._allowed = np.ones(count, bool), np.ones(count, bool)
        self._aside, self._good = np.zeros(count, bool), np.zeros(count, bool)
        self._sums, self._units = np.zeros(count), np.zeros(count)
        self._bets = PairBets(count, self._margin)
        self._when_gone: dict[str, tuple[Floats, Floats]] = {}

    @property
    def left(self) -> tuple[str, ...]:
        """The arms still in: the next unit has a value for each."""
        return self._names(self._in)

    @property
    def aside(self) -> tuple[str, ...]:
        """The arms that were set aside and are not eliminated as worse."""
        return self._names(self._open & self._aside)

    @property
    def good_enough(self) -> tuple[str, ...]:
        """The arms in the race that are at most the margin below the best, at level ``confidence``."""
        return self._names(self._good & self._open)

    @property
    def state(self) -> RaceState:
        """Whether the race is over, and why. An arm left alone need not be the best while others are aside."""
        if np.count_nonzero(self._open) == 1:
            return "one left"
        return "equal within the margin" if self._good[self._open].all() else "open"

    def add(self, values: Mapping[str, float]) -> None:
        """Take the next unit. Values of arms that are not in any more are not looked at.

        Args:
            values: a value for each arm that is still in. Of an arm that failed the caller decides the value.

        Raises:
            ValueError: an arm is unknown or has no value, or a value is NaN or outside the span.
        """
        scaled, is_in = self._scaled(values), self._in
        self._bets.take(scaled, is_in)
        self._sums[is_in] += scaled[is_in]
        self._units[is_in] += 1
        self.n += 1
        self._look()

    def set_aside(self, arm: str) -> None:
        """Measure an arm no further, e.g. because money ran out. It may still be the best, and is not called worse.

        Raises:
            ValueError: the arm is not in any more, or is the last one.
        """
        if arm not in self.left or len(self.left) == 1:
            raise ValueError(f"{arm} cannot be set aside; the arms still in are {', '.join(self.left)}.")
        self._aside[self._arms.index(arm)] = True

    def withdraw(self, arm: str) -> tuple[str, ...]:
        """Take an arm out for a reason other than its values, such as its cost. Its results no longer count.

        Returns:
            The arms that are in again: those that were gone only because this arm was better. Where it was the last
            one in, and there are none, those that were set aside, or else the one that left last.

        Raises:
            ValueError: the arm is unknown or the last one, or was withdrawn.
        """
        if arm not in self._arms or not self._allowed[self._arms.index(arm)]:
            raise ValueError(f"{arm} is not an arm of this race; got {', '.join(self._names(self._allowed))}.")
        if np.count_nonzero(self._allowed) == 1:
            raise ValueError(f"{arm} is the last arm of this race and cannot be withdrawn.")
        place = self._arms.index(arm)
        self._allowed[place] = self._open[place] = False
        self.gone.pop(arm, None)
        back = tuple(name for name in self.gone if not self._shown(*self._when_gone[name])[self._arms.index(name)])
        if not back and not self._in.any():
            back = self.aside or tuple(self.gone)[-1:]
        for name in back:
            self.gone.pop(name, None)
            self._open[self._arms.index(name)], self._aside[self._arms.index(name)] = True, False
        return back

    @property
    def _in(self) -> Which:
        return np.asarray(self._open & ~self._aside)

    def _scaled(self, values: Mapping[str, float]) -> Floats:
        low, high = self._span
        if unknown := values.keys() - set(self._arms):
            raise ValueError(f"{', '.join(sorted(unknown))} is not an arm of this race; got {', '.join(self._arms)}.")
        if missing := [name for name in self.left if name not in values]:
            raise ValueError(f"a unit has a value for each arm that is still in; none for {', '.join(missing)}.")
        for name in self.left:
            if not (isfinite(values[name]) and low <= values[name] <= high):
                raise ValueError(f"values lie between {low:g} and {high:g}; got {values[name]:g} for {name}.")
        every = np.array([values[name] if is_in else low for name, is_in in zip(self._arms, self._in, strict=True)])
        return np.asarray((every - low) / (high - low))

    def _look(self) -> None:
        better, near = self._bets.better, self._bets.near(self._open)
        shown = self._open & self._shown(better, near)
        if self._margin:
            weakest = np.minimum(against(better, self._allowed), near)
            self._good |= self._open & (near >= needed(weakest, self._allowed, self._enough))
        if not shown.any():
            return
        # Not all can be worse than another. Where all that are still in would leave at once, the best mean stays.
        stay = self._in & ~shown if (self._in & ~shown).any() else self._in
        best = int(np.where(stay, self._sums / np.maximum(self._units, 1), -np.inf).argmax())
        shown[best] = False
        for place in np.flatnonzero(shown):
            self.gone[self._arms[place]] = EliminatedArm(self.n, self._arms[best])
            self._when_gone[self._arms[place]] = better, near
        self._open &= ~shown

    def _shown(self, better: Floats, near: Floats) -> Which:
        """Return which arms are shown not to be the best."""
        beaten = against(better, self._allowed)
        return np.asarray(beaten >= needed(np.minimum(beaten, near), self._allowed, self._enough))

    def _names(self, which: Which) -> tuple[str, ...]:
        return tuple(name for name, is_one in zip(self._arms, which, strict=True) if is_one)


# Which of many arms are not the best, at a level of confidence, from values of all of them on the same units. Pure.
#
# All pairs are tested at once, by the sum of their paired differences over the root of the sum of their squares. If two
# arms do not differ, the difference of a unit has either sign equally often: so the largest of all these numbers is
# compared with its distribution when the signs of all units are random (a permutation test of the maximum; Westfall &
# Young 1993). The eliminated arms are taken out, and the rest is tested again (Romano & Wolf 2005, Econometrica
# 73). So all claims are right together with ``confidence``. It is a test of one look: an arm is not to be tested again
# when more units have come. ``Race`` may test at any time, with less power.

_AT_ONCE = 2_000_000
"""Most numbers of a block of draws."""
_SAME = 1e-9


def shown_worse(values: Floats, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return which arm is shown to be better than which: shape (K, K), [i, j] says that i is better than j.

    Args:
        values: shape (units, K), higher is better. Units are drawn independently: where several questions belong
            together, a unit is their mean.
        confidence: chance that all claims are right.
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
