"""How fast a run was: the times of each stage, and how close the whole came to its own limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rag_harness.report.misses import WIDTH
from rag_harness.report.summary import by_experiment, money, quantile, table, total_cost
from rag_harness.results.row import ExperimentResult

STAGES = {
    "total": "total_time_ms",
    "retrieve": "retrieval_time_ms",
    "rerank": "rerank_time_ms",
    "model call": "llm_time_ms",
    "first token": "ttft_ms",
}
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_WORTH_SAYING = 0.05
"""Seconds; threads that wake a moment late are no rate limit."""
_SHORT_CALL_MS = 10.0
"""A model that answers faster is no server: calls are not what such a run waits for."""


def stage_quantiles(rows: Iterable[ExperimentResult]) -> dict[str, dict[str, float]]:
    """Return p50, p95 and p99 in milliseconds of the whole trial and of each stage that some row has a time of."""
    found = {stage: _times(rows, field) for stage, field in STAGES.items()}
    return {
        stage: {name: quantile(times, share) for name, share in SHARES.items()}
        for stage, times in found.items()
        if any(times)
    }


def stage_lines(rows: Iterable[ExperimentResult]) -> list[str]:
    """Return a line an experiment with p50/p95/p99 of the trials and of each stage; none where there are no times."""
    found = {name: stage_quantiles(each) for name, each in by_experiment(rows).items()}
    stages = [stage for stage in STAGES if any(stage in each for each in found.values())]
    if not stages:
        return []
    cells = [(name, *(_cell(each.get(stage)) for stage in stages)) for name, each in found.items()]
    return table([("p50/p95/p99 ms", *stages), *cells])


def speed_lines(rows: Iterable[ExperimentResult], resumed: set[str], concurrency: int) -> list[str]:
    """Return what the trials that this run itself ran took; none where all are replayed or resumed.

    The limit is that of calls that never wait for anything else: their times / ``concurrency``, and never less than the
    longest call.
    """
    new = [row for row in rows if row.trial_id not in resumed and not row.timings_recorded and row.finished_at]
    if not new:
        return []
    wall = max(_wall_seconds(new), 0.001)
    trials = f"{len(new)} trial{'s' * (len(new) > 1)} in {_seconds(wall)}, {_rate(len(new) / wall)} a second"
    parts = ["; ".join([trials, *_paid(new)]), *_limit(new, wall, concurrency)]
    joined = "; ".join(parts)
    return [*([joined] if len(joined) <= WIDTH else parts), *_waits(new)]


def _times(rows: Iterable[ExperimentResult], field: str) -> list[float]:
    return sorted(time for row in rows if (time := getattr(row, field)) is not None)


def _cell(quantiles: Mapping[str, float] | None) -> str:
    return "/".join(_milliseconds(each) for each in quantiles.values()) if quantiles else "-"


def _milliseconds(value: float) -> str:
    if value < 9.95:
        return f"{value:.1f}"
    return f"{value:.0f}" if value < 10_000 else f"{value / 1000:.0f}s"


def _wall_seconds(rows: Sequence[ExperimentResult]) -> float:
    """Return the time from the start of the first trial to the end of the last."""
    ends = [datetime.fromisoformat(row.finished_at).timestamp() for row in rows]
    spent = [(row.total_time_ms + row.waited_ms) / 1000 for row in rows]
    return max(ends) - min(end - seconds for end, seconds in zip(ends, spent, strict=True))


def _limit(rows: Sequence[ExperimentResult], wall: float, concurrency: int) -> list[str]:
    calls = _times(rows, STAGES["model call"])
    if not calls or sum(calls) < len(calls) * _SHORT_CALL_MS:
        return []
    shared, longest = sum(calls) / concurrency / 1000, calls[-1] / 1000
    best = max(shared, longest)
    reached = f"{min(best / wall, 1):.0%}".replace("%", " %")
    if longest > shared:
        return [f"the longest call took {_seconds(longest)}: {reached} of the best possible"]
    mean = sum(calls) / len(calls)
    return [f"{concurrency} in flight at {mean:.0f} ms a call make {_seconds(best)} at best: {reached} of it reached"]


def _paid(rows: Sequence[ExperimentResult]) -> list[str]:
    cost = total_cost(rows)
    return [f"{money(cost)} paid"] if cost else []


def _waits(rows: Sequence[ExperimentResult]) -> list[str]:
    waited, retries = sum(row.waited_ms for row in rows) / 1000, sum(row.retries for row in rows)
    if waited < _WORTH_SAYING and not retries:
        return []
    tries = "1 retry" if retries == 1 else f"{retries} retries"
    return [f"waited {_seconds(waited)} for rate limits and between tries, {tries}"]


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def _rate(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
