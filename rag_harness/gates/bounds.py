"""How sure a value is: the bounds of what a gate is about, and the interval printed beside it, by one method.

The interval is the two bounds at a confidence that lets both hold together, so that a bound of a verdict at 95 % never
lies outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.verdict import Interval

if TYPE_CHECKING:
    from rag_harness.stats.bounded import Span

Population = Literal["like", "finite"]
"""What a verdict is about: cases like these, or the cases of the suite and no others."""
Clusters = Callable[[str], Mapping[str, str]]
"""Gives the cluster of each case of a suite; "" is a cluster of its own."""
_INTERVAL = 0.975
"""Confidence of each end of a 95 % interval; the interval of a gate that asks for more is as sure as its bounds."""


class Grouping(Protocol):
    """What a run is told of its cases."""

    @property
    def population(self) -> Population:
        """What a verdict is about."""
        ...

    @property
    def cluster(self) -> str:
        """What makes cases alike, e.g. ``source_page``; "" where nothing does."""
        ...

    @property
    def clusters(self) -> Clusters | None:
        """Says which case belongs where."""
        ...


class Found(NamedTuple):
    """What a verdict hangs on: the value of each case, or its difference, held against ``target``."""

    values: Mapping[str, float]
    target: float
    population: int
    lost: bool


class Bounds(NamedTuple):
    """Two bounds; ``how`` says how a comparison was made, where it is not the bound without assumptions."""

    low: float
    high: float
    how: str = ""


def is_paired(gate: Gate) -> bool:
    """Whether a gate asks which of two is better: the paired test answers, in place of bounds without assumptions.

    That is ``>`` and ``<`` against another experiment, ``@95% paired``, and a comparison by the value alone, whose
    interval is then that of ``rag-harness compare``.
    """
    if not isinstance(gate.right, Reference):
        return False
    return gate.paired or gate.confidence is None or "=" not in gate.op


def interval_of(gate: Gate, found: Found, grouping: Grouping, unit: str) -> Interval | None:
    """Return the interval beside a value, of 95 % or as sure as the gate's own bounds.

    None where the cases bound nothing, or leave nothing open.
    """
    from rag_harness.stats.inputs import UndefinedError

    if isinstance(gate.right, Reference) and gate.quantile is not None:
        return None
    if grouping.population == "finite" and found.population == len(found.values):
        return None
    try:
        low, high, _ = bounds_of(gate, found, grouping, unit, max(_INTERVAL, (gate.confidence or 0) / 100))
    except UndefinedError:
        return None
    return low, high


def bounds_of(gate: Gate, found: Found, grouping: Grouping, unit: str, confidence: float) -> Bounds:
    """Return a lower and an upper bound, each of which holds by itself with ``confidence``.

    Raises:
        UndefinedError: the cases bound nothing; says why.
    """
    values = list(found.values.values())
    population = found.population if grouping.population == "finite" else None
    clusters = clusters_of(gate.suite, found.values, grouping)
    if gate.quantile is not None:
        return Bounds(*_of_quantile(values, gate.quantile / 100, confidence, population, clusters, grouping))
    span = span_of(values, unit, is_difference=isinstance(gate.right, Reference))
    if is_paired(gate):
        from rag_harness.stats import difference_bounds

        compared = difference_bounds(values, span, confidence, clusters, population)
        return Bounds(*compared.interval, _how(compared.guarded, span))
    from rag_harness.stats import mean_bounds

    low, high = mean_bounds(values, span, confidence, clusters, population)
    return Bounds(low if isinstance(gate.right, Reference) else _possible(low, values, unit), high)


def interval_of_mean(values: Sequence[float], unit: str, clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """Return the 95 % interval of the mean of a measure with this unit, as gates have it; None where nothing bounds it.

    ``clusters`` are of each value, where some are alike.
    """
    from rag_harness.stats import mean_interval
    from rag_harness.stats.inputs import UndefinedError

    try:
        low, high = mean_interval(values, span_of(values, unit), clusters=clusters)
    except UndefinedError:
        return None
    return _possible(low, values, unit), high


def span_of(values: Sequence[float], unit: str, is_difference: bool = False) -> Span | None:
    """Return the range of a share, or of the difference of two; None where a value lies outside, as no share does."""
    span = (-1.0, 1.0) if is_difference else (0.0, 1.0)
    return span if unit == "share" and span[0] <= min(values) <= max(values) <= span[1] else None


def clusters_of(suite: str, cases: Mapping[str, float], grouping: Grouping) -> list[Hashable] | None:
    """Return the cluster of each case; None where none are told."""
    if grouping.clusters is None:
        return None
    known = grouping.clusters(suite)
    return [known.get(case) or (case,) for case in cases]


def _of_quantile(
    values: Sequence[float],
    share: float,
    confidence: float,
    population: int | None,
    clusters: Sequence[Hashable] | None,
    grouping: Grouping,
) -> Interval:
    from rag_harness.stats import quantile, quantile_interval
    from rag_harness.stats.inputs import UndefinedError

    if population == len(values):
        exact = quantile(sorted(values), share)
        return exact, exact
    if clusters is not None:
        raise UndefinedError(
            f"a quantile has no bounds by {grouping.cluster}; ask for a mean, or leave --rag-cluster away"
        )
    return quantile_interval(values, share, 2 * confidence - 1)


def _how(guarded: str, span: Span | None) -> str:
    if not guarded:
        return "by the paired t test"
    return f"{guarded}, so without assumptions" if span else f"{guarded}, so with little certainty"


def _possible(low: float, values: Sequence[float], unit: str) -> float:
    """Return a lower bound that can be: times, costs and counts are not below 0; scores may be."""
    return low if unit == "score" or min(values) < 0 else max(low, 0.0)
