"""Two logistic models: of a sentence, and of an answer.

``benchmarks/faithfulness_training.py`` fits the coefficients. They are in ``coefficients.json``, with the digest of
their training data.
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

COEFFICIENTS_FILE = Path(__file__).with_name("coefficients.json")
BOUND = 4.0
"""Features are cut at so many standard deviations, so that no value outside the training data decides alone."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Logistic:
    """A logistic model of standardised features.

    Attributes:
        names: names of the features.
        mean: mean of each in training.
        scale: standard deviation of each in training, 1 where it did not vary.
        weights: weight of each.
        bias: bias of the model.
    """

    names: tuple[str, ...]
    mean: Doubles
    scale: Doubles
    weights: Doubles
    bias: float

    def probabilities(self, rows: npt.ArrayLike) -> Doubles:
        """Return the probability of each row, shape (n,). NaN counts as the mean."""
        raw = np.asarray(rows, np.float64)
        values = standardised(raw, self.mean, self.scale)
        found: Doubles = 1 / (1 + np.exp(-(values @ self.weights + self.bias)))
        return found


def standardised(rows: Doubles, mean: Doubles, scale: Doubles) -> Doubles:
    """Return standardised features, shape (n, names)."""
    values: Doubles = np.clip(np.where(np.isfinite(rows), (rows - mean) / scale, 0), -BOUND, BOUND)
    return values


@dataclass(frozen=True)
class Coefficients:
    """The fitted coefficients.

    Attributes:
        sentence: P(a sentence contains something that the source does not support).
        response: P(an answer does).
        base: share of sentences in the data with something unsupported.
        threshold: probability from which an answer is called hallucinated.
        data: sha256 of the training data, by file.
    """

    sentence: Logistic
    response: Logistic
    base: float
    threshold: float
    data: dict[str, str]


def at_even_odds(p: Doubles, base: float) -> Doubles:
    """Return probabilities for a prior of 0.5, so that 0.5 means no evidence either way.

    The true rate of the pipeline at hand is not known. In the data nine sentences in ten are supported. With that prior
    a judge would call an invented sentence more likely supported than not.
    """
    odds = p / (1 - p) * (1 - base) / base
    even: Doubles = odds / (1 + odds)
    return even


@lru_cache
def coefficients() -> Coefficients:
    """Return the coefficients that are shipped with the package."""
    said = json.loads(COEFFICIENTS_FILE.read_text(encoding="utf-8"))
    return Coefficients(
        sentence=_logistic(said["sentence"]),
        response=_logistic(said["response"]),
        base=said["base"],
        threshold=said["threshold"],
        data=said["data"],
    )


@lru_cache
def digest() -> str:
    """Return the digest of the coefficients."""
    return file_digest(COEFFICIENTS_FILE)


def _logistic(said: dict[str, Any]) -> Logistic:
    columns = said["features"]
    mean, scale, weights = np.array(list(columns.values()), np.float64).T
    return Logistic(tuple(columns), mean, scale, weights, said["bias"])
