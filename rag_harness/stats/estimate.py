"""A statistic of paired values with its bootstrap interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked_confidence, floats, positive
from rag_harness.stats.intervals import Interval

Statistic: TypeAlias = Callable[..., float]
"""Takes as many lists as the statistic needs."""
_Indices: TypeAlias = npt.NDArray[np.intp]
_DEFINED = 0.95
"""Least share of resamples in which the statistic is defined: with fewer, the bounds would be of another statistic."""


class Estimate(NamedTuple):
    """``value`` is None where it is undefined, ``interval`` where there are too few items; ``reason`` says why."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""


def estimate(
    statistic: Statistic,
    *columns: Values,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of the columns, with the percentile bootstrap over items as its interval (Efron 1979).

    Items of one cluster (a conversation, a document) are similar, so they are drawn together.
    """
    arrays = [floats(column, "estimate") for column in columns]
    try:
        value = statistic(*arrays)
    except UndefinedError as why:
        return Estimate(None, reason=str(why))
    members = members_of(clusters, len(arrays[0]))
    if len(members) < 2:
        return Estimate(value, reason="one item or cluster only, so no interval")
    drawn = _drawn(statistic, arrays, members, positive(resamples), np.random.default_rng(seed))
    if len(drawn) < _DEFINED * resamples:
        return Estimate(value, reason="too few items for an interval: many resamples do not define it")
    if min(drawn) == max(drawn):
        return Estimate(value, reason="no resample differs, so no interval")
    tail = (1 - checked_confidence(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Estimate(value, Interval(float(low), float(high)))


def members_of(clusters: Sequence[Hashable] | None, n: int) -> list[_Indices]:
    """Return the positions of each cluster's items. Without clusters each of ``n`` items is a cluster by itself."""
    if clusters is None:
        return list(np.arange(n).reshape(n, 1))
    if len(clusters) != n:
        raise ValueError(f"clusters are one a value; got {len(clusters)} for {n} values.")
    places: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return [np.asarray(each) for each in places.values()]


def _drawn(
    statistic: Statistic,
    arrays: Sequence[Floats],
    members: Sequence[_Indices],
    resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    found = []
    for chosen in rng.integers(0, len(members), (resamples, len(members))):
        places = np.concatenate([members[number] for number in chosen])
        try:
            found.append(statistic(*(array[places] for array in arrays)))
        except UndefinedError:
            continue
    return found
