"""Confidence bounds of a gate's value, and the confidence interval printed beside the value, by one method.

The interval consists of the two bounds at a confidence at which both hold together. So the bound of a verdict at 95 %
never lies outside of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from rag_harness.gates.cluster_names import STANDS_ALONE, describe_missed, unit_of
from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.verdict import Interval

if TYPE_CHECKING:
    from rag_harness.stats.bounded import ValueRange
    from rag_harness.stats.difference_bounds import DifferenceBounds

Population = Literal["like", "finite"]
"""The population of a verdict: all cases like these, or only the cases of the suite."""
Clusters = Callable[[str], Mapping[str, str] | None]
"""Returns the cluster of each case of a suite, and None where each case stands alone. A case with "" does, too."""
_INTERVAL = 0.975
"""Confidence of each end of a 95 % interval. A gate with a higher confidence uses that for its interval."""


class Grouping(Protocol):
    """The population of the cases, and their clusters, as the run's options say."""

    @property
    def population(self) -> Population:
        """The population of a verdict."""
        ...

    @property
    def clusters(self) -> Clusters | None:
        """Returns the cluster of each case; None where there are none."""
        ...


class ValuesAndTarget(NamedTuple):
    """The data of a verdict: the value or difference of each case, and the ``target`` of their mean."""

    values: Mapping[str, float]
    target: float
    population: int
    lost: bool


class Bounds(NamedTuple):
    """A lower and an upper bound. ``how`` names the test of a comparison, where it is not the assumption-free bound."""

    low: float
    high: float
    how: str = ""


def is_paired(gate: Gate) -> bool:
    """Whether a gate asks which of two experiments is better. A paired test then replaces the assumption-free bounds.

    Such gates have ``>`` or ``<`` against another experiment, or ``@95% paired``, or compare by the value alone; none
    has ``@95% robust``. The interval of those by the value alone is that of ``rag-harness compare``.
    """
    if not isinstance(gate.right, Reference):
        return False
    if gate.test:
        return gate.test == "paired"
    return gate.confidence is None or "=" not in gate.op


def interval_of(gate: Gate, found: ValuesAndTarget, grouping: Grouping, unit: str) -> Interval | None:
    """Return the confidence interval beside a value: 95 %, or the gate's own confidence where that is higher.

    None where the cases allow no bounds, or where all cases of a finite population have a value.
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


def bounds_of(gate: Gate, found: ValuesAndTarget, grouping: Grouping, unit: str, confidence: float) -> Bounds:
    """Return a lower and an upper bound. Each of them holds by itself with ``confidence``.

    Raises:
        UndefinedError: the cases allow no bounds; says why.
    """
    values = list(found.values.values())
    population = found.population if grouping.population == "finite" else None
    clusters = clusters_of(gate.suite, found.values, grouping)
    if gate.quantile is not None:
        return Bounds(*_of_quantile(values, gate.quantile / 100, confidence, population, clusters))
    span = span_of(values, unit, is_difference=isinstance(gate.right, Reference))
    if is_paired(gate):
        from rag_harness.stats import difference_bounds

        compared = difference_bounds(values, span, confidence, clusters, population)
        return Bounds(*compared.interval, _how(compared, span, clusters))
    from rag_harness.stats import mean_bounds
    from rag_harness.stats.inputs import UndefinedError

    if gate.test == "robust" and span is None and population != len(values):
        raise UndefinedError(f"{gate.measure} has no range, so nothing is bounded without assumptions")
    low, high = mean_bounds(values, span, confidence, clusters, population)
    how = "without assumptions" if gate.test == "robust" else ""
    return Bounds(low if isinstance(gate.right, Reference) else _possible(low, values, unit), high, how)


def interval_of_mean(values: Sequence[float], unit: str, clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """Return the 95 % interval of a measure's mean, by the method of the gates; None where the values allow no bounds.

    ``clusters`` has the cluster of each value; None where there are none.
    """
    from rag_harness.stats import mean_interval
    from rag_harness.stats.inputs import UndefinedError

    try:
        low, high = mean_interval(values, span_of(values, unit), clusters=clusters)
    except UndefinedError:
        return None
    return _possible(low, values, unit), high


def span_of(values: Sequence[float], unit: str, is_difference: bool = False) -> ValueRange | None:
    """Return the range of a share, or of a difference of shares; None for another unit, or a value out of range."""
    span = (-1.0, 1.0) if is_difference else (0.0, 1.0)
    return span if unit == "share" and span[0] <= min(values) <= max(values) <= span[1] else None


def clusters_of(suite: str, cases: Mapping[str, float], grouping: Grouping) -> list[str] | None:
    """Return the cluster of each case; None where there are no clusters."""
    known = grouping.clusters(suite) if grouping.clusters is not None else None
    if known is None:
        return None
    return [known.get(case) or f"{STANDS_ALONE}{case}" for case in cases]


def _of_quantile(
    values: Sequence[float],
    share: float,
    confidence: float,
    population: int | None,
    clusters: Sequence[Hashable] | None,
) -> Interval:
    from rag_harness.stats import quantile, quantile_interval
    from rag_harness.stats.clustered_quantiles import clustered_quantile_bounds

    if population == len(values):
        exact = quantile(sorted(values), share)
        return exact, exact
    if clusters is not None and len(set(clusters)) < len(values):
        return clustered_quantile_bounds(values, share, clusters, confidence)
    return quantile_interval(values, share, 2 * confidence - 1)


def _how(compared: DifferenceBounds, span: ValueRange | None, clusters: Sequence[str] | None) -> str:
    if compared.units:
        return f"by the paired t test, {describe_missed(compared.units, unit_of(clusters))}"
    if not compared.guarded:
        return ""
    return f"{compared.guarded}, so {'without assumptions' if span else 'with little certainty'}"


def _possible(low: float, values: Sequence[float], unit: str) -> float:
    """Return a possible lower bound: times, costs and counts are not below 0, but scores may be."""
    return low if unit == "score" or min(values) < 0 else max(low, 0.0)
