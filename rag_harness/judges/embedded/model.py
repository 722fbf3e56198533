"""Three logistic models: of a sentence, of an answer, and of the share of an answer that is supported.

The coefficients are those of ``benchmarks/faithfulness_training.py``, in ``coefficients.json`` with the digest of the
data that they were fitted to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.files.sources import file_digest

FILE = Path(__file__).with_name("coefficients.json")
BOUND = 4.0
"""Standard deviations beyond which a feature says no more: what training never saw must not decide alone."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Logistic:
    """A logistic model of standardised features.

    Attributes:
        names: of the features.
        mean: of each in training.
        scale: of each: its standard deviation, 1 where it did not vary.
        weights: of each.
        bias: of the model.
    """

    names: tuple[str, ...]
    mean: Doubles
    scale: Doubles
    weights: Doubles
    bias: float

    def probabilities(self, rows: npt.ArrayLike) -> Doubles:
        """Return the probability of each row, shape (n,); a value that is no number counts as the mean."""
        raw = np.asarray(rows, np.float64)
        values = standardised(raw, self.mean, self.scale)
        found: Doubles = 1 / (1 + np.exp(-(values @ self.weights + self.bias)))
        return found


def standardised(rows: Doubles, mean: Doubles, scale: Doubles) -> Doubles:
    """Return features as the models see them, shape (n, names)."""
    values: Doubles = np.clip(np.where(np.isfinite(rows), (rows - mean) / scale, 0), -BOUND, BOUND)
    return values


@dataclass(frozen=True)
class Coefficients:
    """What was fitted.

    Attributes:
        sentence: P(a sentence holds something that the source does not support).
        response: P(an answer does).
        share: the share of an answer's sentences that are supported, from estimates of which each weighs the same.
        base: the share of sentences in the data that hold something unsupported.
        threshold: from which on an answer is called hallucinated.
        data: sha256 of the data that all this was fitted to, by file.
    """

    sentence: Logistic
    response: Logistic
    share: Logistic
    base: float
    threshold: float
    data: dict[str, str]


def at_even_odds(p: Doubles, base: float) -> Doubles:
    """Return probabilities as they were if what they say were true as often as not: 0.5 is no evidence either way.

    Nobody knows how often the pipeline at hand is right. In the data nine sentences in ten are, and a judge that takes
    that for granted finds an invented one more likely supported than not.
    """
    odds = p / (1 - p) * (1 - base) / base
    even: Doubles = odds / (1 + odds)
    return even


@lru_cache
def coefficients() -> Coefficients:
    """Return what is shipped with the package."""
    said = json.loads(FILE.read_text(encoding="utf-8"))
    return Coefficients(
        sentence=_logistic(said["sentence"]),
        response=_logistic(said["response"]),
        share=_logistic(said["share"]),
        base=said["base"],
        threshold=said["threshold"],
        data=said["data"],
    )


@lru_cache
def digest() -> str:
    """Return the digest of the coefficients."""
    return file_digest(FILE)


def _logistic(said: dict[str, Any]) -> Logistic:
    columns = said["features"]
    mean, scale, weights = np.array(list(columns.values()), np.float64).T
    return Logistic(tuple(columns), mean, scale, weights, said["bias"])
