"""The speed of a run: quantiles of each stage's time, and how the total time divides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.report.misses import TERMINAL_WIDTH
from rag_harness.report.money import money
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import table
from rag_harness.report.totals import STAGES
from rag_harness.stats import quantile

TIME_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_WORTH_SAYING = 0.05
"""Seconds. Below this, a wait is only a thread that woke late, not a rate limit."""
_WAITING = "waiting between tries"
TablesByName = Mapping[str, SuiteTable]


def stage_quantiles(suite: SuiteTable) -> dict[str, dict[str, float]]:
    """Return p50, p95 and p99 in milliseconds of the whole trial, and of each stage that some row has a time of."""
    found = {stage: _there(times) for stage, times in suite.totals.times.items()}
    return {
        stage: {name: quantile(times, share) for name, share in TIME_QUANTILES.items()}
        for stage, times in found.items()
        if any(times)
    }


def stage_lines(tables: TablesByName) -> list[str]:
    """Return a line for each experiment with p50/p95/p99 of trials and stages; none where there are no times."""
    found = {name: stage_quantiles(suite) for name, suite in sorted(tables.items()) if suite.totals.rows}
    stages = [stage for stage in STAGES if any(stage in times for times in found.values())]
    if not stages:
        return []
    cells = [(name, *(_cell(times.get(stage)) for stage in stages)) for name, times in found.items()]
    return table([("p50/p95/p99 ms", *stages), *cells])


def speed_lines(tables: TablesByName, concurrency: int) -> list[str]:
    """Return how long this run's own trials took, and where; none where all are replayed or resumed."""
    new = [suite for suite in tables.values() if suite.totals.new.any()]
    if not new:
        return []
    wall = max(max(s.totals.ended for s in new) - min(s.totals.began for s in new), 0.001)
    n = sum(int(suite.totals.new.sum()) for suite in new)
    trials = f"{n} trial{'s' * (n > 1)} in {_seconds(wall)}, {_rate(n / wall)} a second"
    return ["; ".join([trials, *_paid(new)]), *_where(new, wall, concurrency), *_waits(new)]


def _where(suites: Sequence[SuiteTable], wall: float, concurrency: int) -> list[str]:
    """Say where the time went. Local models work on one batch after another; calls wait in parallel.

    Work that two experiments share is in the rows of both, and is counted once. Stages of different trials may run at
    the same time, so their sum may exceed the total.
    """
    spent = {"retrieval": _once(suites, "retrieve"), "reranking": _once(suites, "rerank")}
    calls = np.concatenate([_new(suite, "model call") for suite in suites])
    if len(calls):
        how = f" ({calls.mean():.0f} ms each, {concurrency} in flight)"
        spent[f"model calls{how}"] = max(calls.sum() / concurrency, calls.max()) / 1000
    spent["other steps"] = sum(_untimed(suite) for suite in suites) / concurrency / 1000
    spent[_WAITING] = _waiting(suites, concurrency, wall - sum(spent.values()))
    said = [f"{name} {_seconds(seconds)}" for name, seconds in spent.items() if seconds >= _WORTH_SAYING]
    return _folded([*said, f"harness {_seconds(max(wall - sum(spent.values()), 0.0))}"]) if said else []


def _waiting(suites: Sequence[SuiteTable], concurrency: int, left: float) -> float:
    """Return the seconds in which trials only waited, for rate limits and between tries: at most those ``left``."""
    waited = sum(suite.totals.waited_ms for suite in suites) / concurrency
    longest = max(suite.totals.longest_wait_ms for suite in suites)
    return max(min(max(waited, longest) / 1000, left), 0.0)


def _folded(parts: Sequence[str]) -> list[str]:
    """Join the parts with commas, in as many lines as needed."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}, {part}"
        lines = [*lines[:-1], longer] if len(longer) < TERMINAL_WIDTH else [*lines[:-1], f"{lines[-1]},", part]
    return lines


def _untimed(suite: SuiteTable) -> float:
    """Return the milliseconds of new trials outside known stages: steps of a user's own pipeline."""
    times, new = suite.totals.times, suite.totals.new
    staged = np.nansum([times[stage][new] for stage in ("retrieve", "rerank", "model call")], axis=0)
    return float(np.nansum(np.maximum(times["total"][new] - staged, 0.0)))


def _once(suites: Sequence[SuiteTable], stage: str) -> float:
    """Return a stage's seconds over all new trials. Equal times of one case are one shared piece of work."""
    new = [np.where(suite.totals.new, suite.totals.times[stage], np.nan) for suite in suites]
    if all(suite.ids is suites[0].ids for suite in suites):
        return _different(np.array(new)) / 1000
    places = {case: place for place, case in enumerate(dict.fromkeys(case for suite in suites for case in suite.ids))}
    rows = np.full((len(suites), len(places)), np.nan)
    for row, suite, times in zip(rows, suites, new, strict=True):
        row[[places[case] for case in suite.ids]] = times
    return _different(rows) / 1000


def _different(times: npt.NDArray[np.float64]) -> float:
    """Sum the times of each case, shape (suites, cases). Equal times of one case are counted once."""
    ordered = np.sort(times, axis=0)
    ordered[1:][ordered[1:] == ordered[:-1]] = np.nan
    return float(np.nansum(ordered))


def _new(suite: SuiteTable, stage: str) -> npt.NDArray[np.float64]:
    times = suite.totals.times[stage][suite.totals.new]
    return np.asarray(times[~np.isnan(times)])


def _there(times: npt.NDArray[np.float64]) -> list[float]:
    found: list[float] = np.sort(times[~np.isnan(times)]).tolist()
    return found


def _cell(quantiles: Mapping[str, float] | None) -> str:
    return "/".join(_milliseconds(value) for value in quantiles.values()) if quantiles else "-"


def _milliseconds(value: float) -> str:
    if value < 9.95:
        return f"{value:.1f}"
    return f"{value:.0f}" if value < 10_000 else f"{value / 1000:.0f}s"


def _paid(suites: Sequence[SuiteTable]) -> Iterator[str]:
    cost = sum(suite.totals.paid_usd for suite in suites)
    if cost:
        yield f"{money(cost)} paid"


def _waits(suites: Sequence[SuiteTable]) -> Iterator[str]:
    waited = sum(suite.totals.waited_ms for suite in suites) / 1000
    retries = sum(suite.totals.retries for suite in suites)
    if waited >= _WORTH_SAYING or retries:
        tries = "1 retry" if retries == 1 else f"{retries} retries"
        yield f"waited {_seconds(waited)} for rate limits and between tries, {tries}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def _rate(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
