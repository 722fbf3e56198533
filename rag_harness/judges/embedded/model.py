"""Two logistic models: of a sentence, from its features; of an answer, from what the first says of its sentences.

The coefficients are those of ``benchmarks/faithfulness_training.py``, in ``coefficients.json`` with the digest of the
data that they were fitted to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
RESPONSE_NAMES = ("max", "top2", "top3", "mean", "any", "many")
"""The columns of ``response_features``."""

_MANY = 0.3
_EDGE = 1e-4

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
        response: P(an answer does), from ``response_features``.
        threshold: from which on an answer is called hallucinated.
        data: sha256 of the data that all this was fitted to, by file.
    """

    sentence: Logistic
    response: Logistic
    threshold: float
    data: dict[str, str]


def response_features(unsupported: Sequence[float] | Doubles) -> Doubles:
    """Return what the response model sees of an answer, from P(unsupported) of each of its sentences."""
    worst = np.sort(np.clip(np.asarray(unsupported, np.float64), _EDGE, 1 - _EDGE))[::-1]
    means = [worst[0], worst[:2].mean(), worst[:3].mean(), worst.mean()]
    return np.array(
        [*(np.log(mean / (1 - mean)) for mean in means), np.log(-np.log1p(-worst).sum()), np.log1p((worst > _MANY).sum())]
    )


@lru_cache
def coefficients() -> Coefficients:
    """Return what is shipped with the package."""
    said = json.loads(FILE.read_text(encoding="utf-8"))
    return Coefficients(_logistic(said["sentence"]), _logistic(said["response"]), said["threshold"], said["data"])


@lru_cache
def digest() -> str:
    """Return the digest of the coefficients."""
    return file_digest(FILE)


def _logistic(said: dict[str, Any]) -> Logistic:
    columns = said["features"]
    mean, scale, weights = np.array(list(columns.values()), np.float64).T
    return Logistic(tuple(columns), mean, scale, weights, said["bias"])
