"""A statistic of paired values with its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked, floats, positive
from rag_harness.stats.intervals import Interval

Statistic: TypeAlias = Callable[..., float]
"""Takes as many lists as it is estimated from."""
_Indices: TypeAlias = npt.NDArray[np.intp]
_DEFINED = 0.95
"""Share of resamples that must define the statistic: bounds of fewer would be those of another one."""


class Estimate(NamedTuple):
    """``value`` is None where it is not defined, ``interval`` where the items cannot bound it; ``reason`` says why."""

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
    """Return a statistic of the columns, bounded by the percentile bootstrap over items (Efron 1979).

    Items of one cluster (a conversation, a document) are drawn together: they are alike.
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
    tail = (1 - checked(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Estimate(value, Interval(float(low), float(high)))


def members_of(clusters: Sequence[Hashable] | None, n: int) -> list[_Indices]:
    """Return the places of the items of each cluster; without clusters each of ``n`` items is one of its own."""
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
