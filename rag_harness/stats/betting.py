"""A sequential test of whether the mean of a fixed set of cases is above a threshold. It is valid after every case.

It bets against "the mean is at most the threshold". In a fair game a bettor becomes 20 times richer with a probability
of at most 1/20, however often one looks (Ville's inequality). Cases come in random order without replacement. So under
that hypothesis the mean of the next case is at most (N·threshold - sum so far) / (N - n) (Waudby-Smith & Ramdas 2020,
NeurIPS 33; 2023, arXiv 2010.09686, section 5). The money is divided among several stakes. That is a fair game too, and
no single stake has to be chosen.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rag_harness.stats.bounded import ValueRange
from rag_harness.stats.inputs import Floats, checked_confidence

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
            raise ValueError(f"no mean of values between {span[0]:g} and {span[1]:g} is held against {threshold:g}.")
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
