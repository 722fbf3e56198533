"""Binomial and hypergeometric distributions, by logarithms: factorials overflow, and scipy is no dependency."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats


def binomial_distribution(n: int, share: float) -> Floats:
    """Return P(X <= i) for i = 0 … n, where n trials succeed with probability ``share``, strictly between 0 and 1."""
    i = np.arange(n + 1)
    logs = _log_factorials(n)
    terms = logs[n] - logs[i] - logs[n - i] + i * np.log(share) + (n - i) * np.log1p(-share)
    return np.asarray(np.minimum(np.cumsum(np.exp(terms)), 1.0))


def hypergeometric_distribution(n: int, successes: int, population: int) -> Floats:
    """Return P(X <= i) for i = 0 … n of n cases drawn without replacement from ``population``, ``successes`` in it."""
    logs = _log_factorials(population)
    i = np.arange(max(0, n - (population - successes)), min(n, successes) + 1)
    terms = _log_choose(logs, successes, i) + _log_choose(logs, population - successes, n - i)
    chances = np.zeros(n + 1)
    chances[i] = np.exp(terms - _log_choose(logs, population, np.array(n)))
    return np.asarray(np.minimum(np.cumsum(chances), 1.0))


def _log_factorials(n: int) -> Floats:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))


def _log_choose(logs: Floats, n: int, k: npt.NDArray[np.intp]) -> Floats:
    return np.asarray(logs[n] - logs[k] - logs[n - k])
