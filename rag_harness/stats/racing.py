"""A race between arms that are measured on the same units: which is the best, at any time of looking. Pure.

An arm leaves when bets show that it is not the best. All claims of a race are right together with ``confidence``, in
whatever order and however often one looks (``pair_bets`` has the bets and the correction).

The claims are about all units like these. Bets without replacement (``betting``) would be about these units only: after
the last one they always name a best, since the means of these units are then known. But that arm is often not the best
for the next questions, and a tuner chooses for those. In 1,000 simulations with one best of 16 arms, .02 ahead, the
best had left in 35 % after 500 questions; in a race it had left in none (``benchmarks/racing.py``).

Close arms need many units by any valid test: about (2.8 * sd / gap)², with the sd of their paired differences. A race
saves the calls of arms that are clearly worse. To save more, a search may set arms aside: their claims stay open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np

from rag_harness.stats.bounded import ValueRange
from rag_harness.stats.inputs import Floats, checked_confidence
from rag_harness.stats.pair_bets import PairBets, Which, against, needed

RaceState = Literal["open", "one left", "equal within the margin"]


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

    Which arms are set aside, and when the race ends, may depend on all values so far.

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
        self._bets = PairBets(count, self._margin)
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
        self._bets.take(scaled, is_in)
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
        """Take an arm out for a reason other than its values, such as its cost. What it has shown no longer counts.

        Returns:
            The arms that are in again: those that were gone only because this arm was better. Where it was the last
            one in, and there are none, those that were set aside, or else the one that left last.

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
            raise ValueError(f"{', '.join(sorted(unknown))} is no arm of this race; got {', '.join(self._arms)}.")
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
            self.gone[self._arms[place]] = Gone(self.n, self._arms[best])
            self._when_gone[self._arms[place]] = better, near
        self._open &= ~shown

    def _shown(self, better: Floats, near: Floats) -> Which:
        """Return which arms are shown not to be the best."""
        beaten = against(better, self._allowed)
        return np.asarray(beaten >= needed(np.minimum(beaten, near), self._allowed, self._enough))

    def _names(self, which: Which) -> tuple[str, ...]:
        return tuple(name for name, is_one in zip(self._arms, which, strict=True) if is_one)
