"""Logistic regression with ridge penalty: the probability of a binary label from features that may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from rag_harness.stats.inputs import Floats

L2 = 1.0
"""Ridge penalty on coefficients of standardised features; the intercept has none."""
_STEPS = 50
_ENOUGH = 1e-9

Features = Mapping[str, float | None]
"""Features by name; None is a missing value."""


class Logistic(BaseModel):
    """A fitted model. A feature enters as (value - mean) / spread, and as 0 where it is missing.

    ``n`` labels were fitted; ``positive`` of them are 1.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    n: int
    positive: int
    intercept: float
    means: dict[str, float] = {}
    spreads: dict[str, float] = {}
    coefficients: dict[str, float] = {}

    @model_validator(mode="after")
    def _is_whole(self) -> Logistic:
        for name in self.coefficients:
            lacks = [what for what, of in (("mean", self.means), ("spread", self.spreads)) if name not in of]
            if lacks or not self.spreads[name]:
                raise ValueError(f"the feature {name} has no {' and no '.join(lacks or ['spread but 0'])}")
        return self

    def probability(self, features: Features) -> float:
        """Return the probability of 1."""
        total = self.intercept
        for name, coefficient in self.coefficients.items():
            value = features.get(name)
            total += 0.0 if value is None else coefficient * (value - self.means[name]) / self.spreads[name]
        return float(1 / (1 + np.exp(-np.clip(total, -60, 60))))


def fitted(examples: Sequence[Features], labels: Sequence[bool], signs: Mapping[str, int], l2: float = L2) -> Logistic:
    """Return the model of ``labels``, fitted by Newton's method (IRLS) with a ridge penalty ``l2``.

    ``signs`` names the features, and says whether a coefficient must be positive (1), negative (-1), or is free (0). A
    feature whose estimate has the wrong sign is left out. Where all labels are equal, or there are none, the model has
    no features: its probability is Laplace's (k + 1) / (n + 2).
    """
    left = list(signs)
    while True:
        model = _fitted(examples, labels, left, l2)
        wrong = {name: value * signs[name] for name, value in model.coefficients.items() if value * signs[name] < 0}
        if not wrong:
            return model
        left.remove(min(wrong, key=lambda name: wrong[name]))


def _fitted(examples: Sequence[Features], labels: Sequence[bool], names: Sequence[str], l2: float) -> Logistic:
    n, positive = len(labels), sum(labels)
    if positive in (0, n):
        return Logistic(n=n, positive=positive, intercept=float(np.log((positive + 1) / (n - positive + 1))))
    columns = {name: np.array([_number(each.get(name)) for each in examples]) for name in names}
    means = {name: float(np.nanmean(column)) for name, column in columns.items() if np.isfinite(column).any()}
    spreads = {name: float(np.nanstd(columns[name])) for name in means}
    used = [name for name in names if spreads.get(name, 0.0) > 0]
    standard = [(np.nan_to_num(columns[name], nan=means[name]) - means[name]) / spreads[name] for name in used]
    weights = _newton(np.column_stack([np.ones(n), *standard]), np.array(labels, float), l2)
    return Logistic(
        n=n,
        positive=positive,
        intercept=float(weights[0]),
        means={name: means[name] for name in used},
        spreads={name: spreads[name] for name in used},
        coefficients=dict(zip(used, map(float, weights[1:]), strict=True)),
    )


def _newton(design: Floats, labels: Floats, l2: float) -> Floats:
    penalty = l2 * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    weights: Floats = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -60, 60)))
        gradient = design.T @ (chance - labels) + penalty @ weights
        curvature = (design.T * (chance * (1 - chance))) @ design + penalty + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < _ENOUGH:
            break
    return weights


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
