"""How often is a verdict with evidence wrong, how often does an interval hold the mean, how soon may a run stop?

    python benchmarks/verdicts.py [seed] [runs]

Scores are drawn as ours look: none at all for a third of the cases, right for most and anything for the rest, 0 or 1,
skewed. A verdict is wrong where a bound lies beyond the mean of what was drawn from: PASS where the lower one does,
FAIL where the upper one does. Goal: 5 % each at 95 %. Bootstraps and weights are drawn 1,000 times instead of 10,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rag_harness.gates.early_stop import EarlyStop
from rag_harness.gates.grammar import Gate
from rag_harness.stats import Interval, bootstrap_interval, mean_bounds, mean_interval, wilson_interval
from rag_harness.stats.bounded import bounded_bounds
from rag_harness.stats.clusters import cluster_sums
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.mean_bounds import FEW
from rag_harness.stats.shares import share_bounds
from rag_harness.stats.students import bootstrap_t_bounds, t_bounds

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Bounds = Callable[[Floats, float], Interval]
DRAWS = 1000
SCORES: dict[str, Draw] = {
    "zero-inflated": lambda rng, n: np.where(rng.random(n) < 0.3, 0, rng.beta(5, 2, n)),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.75, 0, rng.beta(2, 5, n)),
    "mostly right, 80 %": lambda rng, n: np.where(rng.random(n) < 0.8, 1, rng.random(n)),
    "mostly right, 90 %": lambda rng, n: np.where(rng.random(n) < 0.9, 1, rng.random(n)),
    "two-point, 80 %": lambda rng, n: (rng.random(n) < 0.8).astype(float),
    "two-point, 95 %": lambda rng, n: (rng.random(n) < 0.95).astype(float),
    "skewed": lambda rng, n: rng.beta(8, 1.2, n),
    "times, log-normal": lambda rng, n: rng.lognormal(0, 0.5, n),
}


def students_t(values: Floats, confidence: float) -> Interval:
    """Student's t; equal values bound nothing but themselves."""
    try:
        return t_bounds(values, confidence)
    except UndefinedError:
        return Interval(float(values.mean()), float(values.mean()))


def bootstrap_t(values: Floats, confidence: float) -> Interval:
    """The bootstrap-t, as textbooks have it."""
    try:
        return bootstrap_t_bounds(values, confidence, resamples=DRAWS)
    except UndefinedError:
        return Interval(float(values.mean()), float(values.mean()))


def percentile(values: Floats, confidence: float) -> Interval:
    """The percentile bootstrap."""
    return bootstrap_interval(values, confidence=2 * confidence - 1, resamples=DRAWS)


def harness(values: Floats, confidence: float) -> Interval:
    """What a gate with evidence has."""
    if np.isin(values, (0, 1)).all():
        return share_bounds(int(values.sum()), len(values), confidence)
    if values.max() > 1:
        return mean_bounds(values, None, confidence)
    return bounded_bounds(values, (0, 1), confidence, resamples=DRAWS)


def printed(values: Floats) -> Interval:
    """The interval that is printed beside a value."""
    if np.isin(values, (0, 1)).all():
        return wilson_interval(int(values.sum()), len(values))
    if len(values) >= FEW:
        return bootstrap_interval(values, resamples=DRAWS)
    if values.max() > 1:
        return mean_interval(values)
    return bounded_bounds(values, (0, 1), 0.975, unseen=0.5, resamples=DRAWS)


METHODS: dict[str, Bounds] = {
    "percentile": percentile,
    "t": students_t,
    "bootstrap-t": bootstrap_t,
    "harness": harness,
}


def wrong(
    name: str, n: int, runs: int, seed: int, methods: dict[str, Bounds] = METHODS
) -> dict[str, tuple[float, float]]:
    """Return the share of wrong PASS and wrong FAIL at 95 %, by method."""
    rng = np.random.default_rng(seed)
    truth = SCORES[name](rng, 2_000_000).mean()
    drawn = [SCORES[name](rng, n) for _ in range(runs)]
    found = {method: [bounds(values, 0.95) for values in drawn] for method, bounds in methods.items()}
    return {
        method: (
            float(np.mean([each.low > truth for each in bounds])),
            float(np.mean([each.high < truth for each in bounds])),
        )
        for method, bounds in found.items()
    }


def covered(name: str, n: int, runs: int, seed: int, interval_of: Callable[[Floats], Interval] = printed) -> float:
    """Return the share of intervals that hold the mean."""
    rng = np.random.default_rng(seed)
    truth = SCORES[name](rng, 2_000_000).mean()
    found = [interval_of(SCORES[name](rng, n)) for _ in range(runs)]
    return float(np.mean([each.low <= truth <= each.high for each in found]))


def clustered(runs: int, seed: int, clusters: int = 30, each: int = 5) -> tuple[float, float]:
    """Return the share of bounds beyond the mean, of cases that are alike in their cluster: by cluster, and without."""
    rng, ids = np.random.default_rng(seed), list(np.repeat(np.arange(clusters), each))
    outside = np.zeros(2)
    for _ in range(runs):
        page = np.repeat(rng.beta(4, 2, clusters), each)
        values = np.where(rng.random(clusters * each) < 0.8, page, rng.beta(4, 2, clusters * each))
        for place, bounds in enumerate((t_bounds(values, 0.95, ids), t_bounds(values, 0.95))):
            outside[place] += (bounds.low > 2 / 3) + (bounds.high < 2 / 3)
    assert len(cluster_sums(values, ids).sizes) == clusters
    return float(outside[0] / runs), float(outside[1] / runs)


def stopped(right: float, runs: int, seed: int, n: int = 200, threshold: float = 0.8) -> tuple[float, float]:
    """Return the share of wrong verdicts and the median number of cases asked, looking after every one."""
    rng = np.random.default_rng(seed)
    population = (np.arange(n) < round(right * n)).astype(float)
    gate = Gate("e3", (), "recall@5", ">=", threshold, confidence=95.0)
    truth = "passed" if population.mean() >= threshold else "failed"
    states, asked = [], []
    for _ in range(runs):
        stop = EarlyStop(gate, n)
        asked.append(0)
        for value in rng.permutation(population):
            stop.add(float(value))
            asked[-1] += 1
            if stop.state:
                break
        states.append(stop.state != truth)
    return float(np.mean(states)), float(np.median(asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    chosen = parser.parse_args()
    runs, seed = chosen.runs, chosen.seed
    print(f"seed {seed}, {runs} runs; wrong PASS / wrong FAIL in %, and how often the printed interval holds the mean")
    print(f"{'':<26}{''.join(f'{method:>14}' for method in METHODS)}{'printed':>10}")
    for n in (20, 40, 200):
        for name in SCORES:
            found = wrong(name, n, runs, seed)
            cells = "".join(f"{100 * low:7.1f} /{100 * high:5.1f}" for low, high in found.values())
            print(f"{f'{name}, n = {n}':<26}{cells}{covered(name, n, runs, seed):10.1%}", flush=True)
    by_cluster, alone = clustered(runs, seed)
    print(
        f"\n30 clusters of 5, both bounds: {by_cluster:.1%} beyond the mean by cluster, {alone:.1%} without (goal 10 %)"
    )
    print("\nearly stop at 0.8, 200 cases, looking after every one")
    for right in (0.5, 0.7, 0.795, 0.8, 0.85, 0.9, 0.95):
        share, median = stopped(right, runs, seed)
        print(f"  truly {right:<6} wrong {share:6.1%}, median stop at {median:.0f}", flush=True)


if __name__ == "__main__":
    main()
