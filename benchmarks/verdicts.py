"""How often is a verdict with evidence wrong, how often does an interval hold the mean, how soon may a run stop?

    python benchmarks/verdicts.py [seed] [runs]

Scores are drawn as ours look: none at all for a third of the cases, right for most and anything for the rest, 0 or 1,
skewed, rarely anything but right; differences as those of two such scores, or rare gains and losses. A verdict is wrong
where a bound lies beyond the mean of what was drawn from: PASS where the lower one does, FAIL where the upper one does.
Goal: 5 % each at 95 %, and 94 % of the intervals hold the mean. Weights are drawn 1,000 times instead of 10,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rag_harness.gates.early_stop import EarlyStop
from rag_harness.gates.grammar import Gate
from rag_harness.stats import Interval, bounded, difference_bounds, mean_bounds
from rag_harness.stats.clusters import cluster_sums
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.settling import BoundReach
from rag_harness.stats.students import t_bounds

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Bounds = Callable[[Floats, float], Interval]
DRAWS = 1000
CASES = (20, 40, 99, 100, 200, 999, 1000, 5000)
RARE = (0.003, 0.01, 0.02)
SCORES: dict[str, Draw] = {
    "zero-inflated": lambda rng, n: np.where(rng.random(n) < 0.3, 0, rng.beta(5, 2, n)),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.75, 0, rng.beta(2, 5, n)),
    "mostly right, 80 %": lambda rng, n: np.where(rng.random(n) < 0.8, 1, rng.random(n)),
    "mostly right, 90 %": lambda rng, n: np.where(rng.random(n) < 0.9, 1, rng.random(n)),
    "two-point, 80 %": lambda rng, n: (rng.random(n) < 0.8).astype(float),
    "two-point, 95 %": lambda rng, n: (rng.random(n) < 0.95).astype(float),
    "skewed": lambda rng, n: rng.beta(8, 1.2, n),
}
TIMES: dict[str, Draw] = {"times, log-normal": lambda rng, n: rng.lognormal(0, 0.5, n)}
DIFFERENCES: dict[str, Draw] = {}


def _of_two(name: str, draw: Draw) -> None:
    DIFFERENCES[f"of two {name}"] = lambda rng, n: draw(rng, n) - draw(rng, n)


def _rare(share: float) -> None:
    SCORES[f"{share:.1%} worth half"] = lambda rng, n: np.where(rng.random(n) < share, 0.5, 1.0)
    SCORES[f"{share:.1%} worth anything"] = lambda rng, n: np.where(rng.random(n) < share, rng.random(n), 1.0)
    DIFFERENCES[f"{share:.1%} gains"] = lambda rng, n: (rng.random(n) < share).astype(float)
    DIFFERENCES[f"{share:.1%} losses"] = lambda rng, n: -(rng.random(n) < share).astype(float)
    DIFFERENCES[f"{share:.1%} gains of any size"] = lambda rng, n: (rng.random(n) < share) * rng.random(n)


for kind, scores in list(SCORES.items()):
    _of_two(kind, scores)
for each in RARE:
    _rare(each)


def students_t(values: Floats, confidence: float) -> Interval:
    """Student's t; equal values bound nothing but themselves."""
    try:
        return t_bounds(values, confidence)
    except UndefinedError:
        return Interval(float(values.mean()), float(values.mean()))


def harness(values: Floats, confidence: float) -> Interval:
    """What a gate on a share has."""
    return mean_bounds(values, (0, 1), confidence)


def harness_times(values: Floats, confidence: float) -> Interval:
    """What a gate on times has."""
    return mean_bounds(values, None, confidence)


def harness_better(values: Floats, confidence: float) -> Interval:
    """What a gate has that asks which is better."""
    return difference_bounds(values, (-1, 1), confidence).interval


def wrong(
    draw: Draw, n: int, runs: int, seed: int, methods: dict[str, Bounds]
) -> dict[str, tuple[float, float, float]]:
    """Return by method the share of wrong PASS and wrong FAIL at 95 %, and of 95 % intervals that hold the mean."""
    rng = np.random.default_rng(seed)
    truth = draw(rng, 4_000_000).mean()
    drawn = [draw(rng, n) for _ in range(runs)]
    found = {}
    for method, bounds in methods.items():
        sides = [bounds(values, 0.95) for values in drawn]
        ends = [bounds(values, 0.975) for values in drawn]
        found[method] = (
            float(np.mean([low > truth + 1e-12 for low, _ in sides])),
            float(np.mean([high < truth - 1e-12 for _, high in sides])),
            float(np.mean([low - 1e-12 <= truth <= high + 1e-12 for low, high in ends])),
        )
    return found


def decided(mean: float, sd: float, n: int, runs: int, seed: int) -> tuple[float, float, float]:
    """Return how often a normal difference is seen: without assumptions, by the gate, by a paired t test."""
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(mean, sd, n).clip(-1, 1) for _ in range(runs)]
    ways: list[Bounds] = [lambda v, c: mean_bounds(v, (-1, 1), c), harness_better, students_t]
    return tuple(float(np.mean([way(values, 0.95).low > 0 for values in drawn])) for way in ways)  # type: ignore[return-value]


def forecast(values: Floats, gap: float, is_difference: bool, runs: int, seed: int) -> tuple[int, float]:
    """Return how many cases are said to settle a gap, and how often so many do."""
    span = (-1.0, 1.0) if is_difference else (0.0, 1.0)
    n, rng = BoundReach(values, span, is_difference=is_difference).cases(gap) or 0, np.random.default_rng(seed)
    bounds = harness_better if is_difference else harness
    cleared = [bounds(rng.choice(values, n), 0.95).low >= values.mean() - gap - 1e-12 for _ in range(runs)]
    return n, float(np.mean(cleared))


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


def _table(title: str, shapes: dict[str, Draw], runs: int, seed: int, methods: dict[str, Bounds]) -> None:
    print(f"\n{title}\n| {'| '.join(['what, n', *methods])}|")
    for name, draw in shapes.items():
        for n in CASES:
            found = wrong(draw, n, runs, seed, methods).values()
            cells = (f"{100 * low:.1f} / {100 * high:.1f}, {100 * held:.1f}" for low, high, held in found)
            print(f"| {name}, {n} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument(
        "--only", default="", help="a table: scores, times, differences, seen, forecast, clusters, stop"
    )
    chosen = parser.parse_args()
    runs, seed, only = chosen.runs, chosen.seed, chosen.only
    bounded.DRAWS = DRAWS
    print(
        f"seed {seed}, {runs} runs; wrong PASS / wrong FAIL at 95 %, and how often a 95 % interval holds the mean, in %"
    )
    others: dict[str, Bounds] = {"Student's t": students_t}
    if only in ("", "scores"):
        _table("scores", SCORES, runs, seed, {**others, "the harness": harness})
    if only in ("", "times"):
        _table("times", TIMES, runs, seed, {**others, "the harness": harness_times})
    if only in ("", "differences"):
        _table("differences", DIFFERENCES, runs, seed, {"Student's t": students_t, "better": harness_better})
    if only in ("", "seen"):
        print("\nseen at 95 %: without assumptions, by the gate that asks which is better, by paired t")
        for mean, sd in ((0.05, 0.1), (0.02, 0.05)):
            for n in (20, 30, 40, 50, 60, 100, 200):
                shares = ", ".join(f"{share:.1%}" for share in decided(mean, sd, n, runs, seed))
                print(f"  N({mean}, {sd}), n = {n}: {shares}", flush=True)
    if only in ("", "forecast"):
        print("\ncases that are said to settle a gap, and how often they do (goal 75 to 85 %)")
        rng = np.random.default_rng(seed)
        for name, draw in [*list(SCORES.items())[:7], *list(DIFFERENCES.items())[:7]]:
            values = draw(rng, 100)
            n, share = forecast(values, 0.05, name in DIFFERENCES, runs, seed)
            print(f"  {name}, gap 0.05: {n} cases, {share:.1%}", flush=True)
    if only in ("", "clusters"):
        by_cluster, alone = clustered(runs, seed)
        print(f"\n30 clusters of 5: {by_cluster:.1%} beyond the mean by cluster, {alone:.1%} without (goal 10 %)")
    if only in ("", "stop"):
        print("\nearly stop at 0.8, 200 cases, looking after every one")
        for right in (0.5, 0.7, 0.795, 0.8, 0.85, 0.9, 0.95):
            share, median = stopped(right, runs, seed)
            print(f"  truly {right:<6} wrong {share:6.1%}, median stop at {median:.0f}", flush=True)


if __name__ == "__main__":
    main()
