"""A race between arms that are measured on the same units: which is the best, at any time of looking. Pure.

For each pair a bettor bets that arm i is better than arm j: wealth *= 1 + stake * (x_i - x_j). There is one wealth for
each stake, and their mean is the pair's. If j is one of the best, every pair against j is a fair or a losing game, and
so is their mean. It becomes 20 times richer with a probability of at most 1/20, however often one looks (Ville's
inequality; bets on bounded means: Waudby-Smith & Ramdas 2023, arXiv 2010.09686). Other bets are that arm i is not more
than ``margin`` below arm j.

All claims of a race are right together with ``confidence``. They are tested by closure: means of wealths that are fair
are fair, too (Vovk & Wang 2021, Annals of Statistics 49). No arm is both one of the best and more than the margin below
the best. So each arm has at most one wrong claim, and the two kinds of claims share one correction.

The claims are about all units like these. Bets without replacement (``betting``) would be about these units only: after
the last one they always name a best, since the means of these units are then known. But that arm is often not the best
for the next questions, and a tuner chooses for those (``benchmarks/racing.py`` measures how often).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.bounded import ValueRange
from rag_harness.stats.inputs import Floats, checked_confidence

RaceState = Literal["open", "one left", "equal within the margin"]
_STAKES = np.array([0.1, 0.2, 0.4, 0.8])[:, None, None]
"""Parts of the money that are staked. The best one is gap / variance: small for close arms, large where most tie."""
_RICHEST, _POOREST = 1e100, 1e-100
"""Wealth is held below the first, and is given up below the second. Neither makes a game better than fair."""


class Gone(NamedTuple):
    """When an arm was shown not to be the best: after how many units, and which arm had the best mean then."""

    after: int
    better: str


class Race:
    """K arms are measured on the same units, which come in one random order.

    A unit is what is drawn independently: a question, or a page or conversation with its questions. The caller gives
    one value for each arm and unit. With the mean of a page's questions all pages count alike. With their sum divided
    by the most questions of a page, all questions count alike; the margin then has to be scaled in the same way.

    ``left`` are the arms still in, ``gone`` those shown not to be the best. ``good_enough`` are those that are not gone
    and are shown to be at most ``margin`` below the best. ``n`` is the number of units.

    Which arms are set aside or withdrawn, and when the race ends, may depend on all values so far.

    Args:
        arms: names of the arms.
        margin: an arm so far below the best is good enough, in the unit of the values; 0 where only the best is.
        confidence: chance that all claims are right, however often one looks and whenever the race is ended.
        span: lowest and highest possible value.

    Raises:
        ValueError: there are no arms, two have one name, the span is not finite, or the margin is not within it.
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
        self.gone: dict[str, Gone] = {}
        self._arms, self._span, self._margin = tuple(arms), span, margin / width
        self._enough = 1 / (1 - checked_confidence(confidence))
        count = len(arms)
        # Open: neither gone nor withdrawn.
        self._open, self._allowed = np.ones(count, bool), np.ones(count, bool)
        self._aside, self._good = np.zeros(count, bool), np.zeros(count, bool)
        self._sums, self._units = np.zeros(count), np.zeros(count)
        # Axes: stake, the arm that is bet on, the arm that it is bet against.
        self._better: Floats = np.ones((len(_STAKES), count, count))
        self._near: Floats | None = np.ones_like(self._better) if margin else None
        self._when_gone: dict[str, tuple[Floats, Floats]] = {}

    @property
    def left(self) -> tuple[str, ...]:
        """The arms still in: the next unit has a value for each."""
        return self._names(self._in)

    @property
    def aside(self) -> tuple[str, ...]:
        """The arms that were set aside and are not shown to be worse."""
        return self._names(self._open & self._aside)

    @property
    def good_enough(self) -> tuple[str, ...]:
        """The arms that are not gone and are shown to be at most the margin below the best."""
        return self._names(self._good & self._open)

    @property
    def state(self) -> RaceState:
        """Whether the race is over, and why. An arm left alone is not shown to be the best while others are aside."""
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
        pairs = is_in[:, None] & is_in
        gains = np.where(pairs, scaled[:, None] - scaled, 0.0)
        self._better = _after(self._better, gains)
        if self._near is not None:
            self._near = _after(self._near, np.where(pairs, gains + self._margin, 0.0))
        self._sums[is_in] += scaled[is_in]
        self._units[is_in] += 1
        self.n += 1
        self._look()

    def set_aside(self, arm: str) -> None:
        """Measure an arm no further, for example for want of money. It may still be the best, and is not called worse.

        Raises:
            ValueError: the arm is not in any more, or is the last one.
        """
        if arm not in self.left or len(self.left) == 1:
            raise ValueError(f"{arm} cannot be set aside; the arms still in are {', '.join(self.left)}.")
        self._aside[self._arms.index(arm)] = True

    def withdraw(self, arm: str) -> tuple[str, ...]:
        """Take an arm out for a reason other than its values, such as its cost. It no longer counts as the best.

        Returns:
            The arms that come back: those that were gone only because this arm was better. They need values again.

        Raises:
            ValueError: the arm is unknown or the last one, or was withdrawn.
        """
        if arm not in self._arms or not self._allowed[self._arms.index(arm)]:
            raise ValueError(f"{arm} is no arm of this race; got {', '.join(self._names(self._allowed))}.")
        if np.count_nonzero(self._allowed) == 1:
            raise ValueError(f"{arm} is the last arm of this race and cannot be withdrawn.")
        place = self._arms.index(arm)
        self._allowed[place] = self._open[place] = False
        self.gone.pop(arm, None)
        back = tuple(name for name in self.gone if not self._shown(*self._when_gone[name])[self._arms.index(name)])
        for name in back:
            del self.gone[name]
            self._open[self._arms.index(name)], self._aside[self._arms.index(name)] = True, False
        return back

    @property
    def _in(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._open & ~self._aside)

    def _scaled(self, values: Mapping[str, float]) -> Floats:
        low, high = self._span
        if unknown := values.keys() - set(self._arms):
            raise ValueError(f"{', '.join(sorted(unknown))} is no arm of this race; got {', '.join(self._arms)}.")
        if missing := [name for name in self.left if name not in values]:
            raise ValueError(f"a unit has a value for each arm that is still in; none for {', '.join(missing)}.")
        for name in self.left:
            if not (isfinite(values[name]) and low <= values[name] <= high):
                raise ValueError(f"values lie between {low:g} and {high:g}; got {values[name]:g} for {name}.")
        every = np.array([values[name] if is_in else low for name, is_in in zip(self._arms, self._in, strict=True)])
        return np.asarray((every - low) / (high - low))

    def _look(self) -> None:
        better, near = self._better.mean(axis=0), self._evidence_near()
        shown = self._open & self._shown(better, near)
        if self._near is not None:
            beaten = self._evidence_against(better)
            self._good |= self._open & (near >= self._needed(np.minimum(beaten, near)))
        if not shown.any():
            return
        # Not all can be worse than another. Where all that are still in would leave at once, the best mean stays.
        stay = self._in & ~shown if (self._in & ~shown).any() else self._in
        best = int(np.where(stay, self._sums / np.maximum(self._units, 1), -np.inf).argmax())
        shown[best] = False
        for place in np.flatnonzero(shown):
            self.gone[self._arms[place]] = Gone(self.n, self._arms[best])
            self._when_gone[self._arms[place]] = better, near
        self._open &= ~shown

    def _shown(self, better: Floats, near: Floats) -> npt.NDArray[np.bool_]:
        """Return which arms are shown not to be the best, shape (K,)."""
        beaten = self._evidence_against(better)
        return np.asarray(beaten >= self._needed(np.minimum(beaten, near)))

    def _needed(self, least: Floats) -> Floats:
        """Return the evidence that each arm's claim needs, shape (K,).

        Closure: the mean with the evidence of any other arms must be enough, too. So the claim has to make up for what
        the others fall short of it. ``least`` is the weakest evidence for a claim about each arm.
        """
        short = np.where(self._allowed, np.maximum(self._enough - least, 0.0), 0.0)
        return np.asarray(self._enough + short.sum() - short)

    def _evidence_against(self, better: Floats) -> Floats:
        """Return the evidence that each arm is not the best, shape (K,): the mean of all others against it."""
        others = better[self._allowed].sum(axis=0) - 1  # without the arm against itself
        return np.asarray(others / max(np.count_nonzero(self._allowed) - 1, 1))

    def _evidence_near(self) -> Floats:
        """Return the evidence that each arm is good enough, shape (K,): the weakest against an open arm."""
        if self._near is None:
            return np.full(len(self._arms), np.inf)
        near = self._near.mean(axis=0)
        np.fill_diagonal(near, np.inf)
        return np.asarray(near[:, self._open].min(axis=1))

    def _names(self, which: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, is_one in zip(self._arms, which, strict=True) if is_one)


def _after(wealth: Floats, gains: Floats) -> Floats:
    now = np.minimum(wealth * (1 + _STAKES * gains), _RICHEST)
    return np.where(now < _POOREST, 0.0, now)
