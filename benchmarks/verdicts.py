"""How often is a verdict with evidence wrong, how often does an interval hold the mean, how soon may a run stop?

    python benchmarks/verdicts.py [seed] [runs]

Scores are drawn as ours look: none at all for a third of the cases, right for most and anything for the rest, 0 or 1,
skewed, rarely anything but right; differences as those of two such scores, or rare gains and losses. A verdict is wrong
where a bound lies beyond the mean of what was drawn from: PASS where the lower one does, FAIL where the upper one does.
Goal: 5 % each at 95 %, and 94 % of the intervals hold the mean. Weights are drawn 1,000 times instead of 10,000.

Breaks: most cases are a little up, a few are broken, and the true mean is 0. A sample without a broken case looks like
cases of which none breaks, so no test is right where breaks are rarer than 4 in n; from there on the goal holds. By
page, a page of five breaks as a whole, and half of the variance of the others is the page's; n counts pages.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from rag_harness.runs.gates.early_stopping import EarlyStop
from rag_harness.runs.gates.grammar import Gate
from rag_harness.stats import (
    Interval,
    clopper_pearson,
    difference_bounds,
    difference_interval,
    holm_counts,
    mean_bounds,
)
from rag_harness.stats import means as bounded
from rag_harness.stats.distributions import t_outside
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.means import cluster_sums, t_bounds
from rag_harness.stats.paired_tests import SEEN, BoundReach

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Bounds = Callable[[Floats, float], Interval]
DRAWS = 1000
CASES = (20, 40, 99, 100, 200, 999, 1000, 5000)
RARE = (0.003, 0.01, 0.02)
BROKEN = tuple(product((0.01, 0.02, 0.05, 0.1), (0.3, 0.6, 1.0), (0.03, 0.05, 0.1)))
"""Share of the cases that break, by how much, and the deviation of the others."""
BROKEN_CASES = (20, 40, 100, 200, 400, 1000)
GRADED: dict[str, Draw] = {
    "Beta(8, 2)": lambda rng, n: rng.beta(8, 2, n),
    "Beta(4, 1)": lambda rng, n: rng.beta(4, 1, n),
    "0, 0.25 … 1": lambda rng, n: rng.integers(0, 5, n) / 4,
}
STOPS = 5000
"""Runs of an early stop with graded values."""
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


def broken(rng: np.random.Generator, n: int, shape: tuple[float, float, float], by_page: bool) -> Floats:
    """Return differences of n cases, or of five cases of each of n pages, whose true mean is 0."""
    share, depth, deviation = shape
    up, breaks = share * depth / (1 - share), rng.random(n) < share
    if not by_page:
        return np.where(breaks, -depth, rng.normal(up, deviation, n)).clip(-1, 1)
    part = deviation * np.sqrt(0.5)
    others = rng.normal(up, part, n)[:, None] + rng.normal(0, part, (n, 5))
    return np.where(breaks[:, None], -depth, others).clip(-1, 1).ravel()


def wrong_of_broken(
    shape: tuple[float, float, float], n: int, by_page: bool, runs: int, seed: int
) -> tuple[float, float, float]:
    """Return how often better is wrong, and with ``robust``, and how often a 95 % interval holds the mean."""
    rng, pages = np.random.default_rng(seed), np.repeat(np.arange(n), 5).tolist() if by_page else None
    found = []
    for _ in range(runs):
        values = broken(rng, n, shape, by_page)
        low, high = difference_interval(values, (-1, 1), 0.95, pages)
        better = difference_bounds(values, (-1, 1), 0.95, pages).interval.low > 0
        # No lower bound without assumptions is above the mean of the cases.
        robust = values.mean() > 0 and mean_bounds(values, (-1, 1), 0.95, pages).low > 0
        found.append((better, robust, low <= 0 <= high))
    wrong, unsafe, held = np.mean(found, axis=0)
    return float(wrong), float(unsafe), float(held)


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


def near(draw: Draw, right: float, seed: int, n: int = 200) -> Floats:
    """Return so many graded values with exactly this mean."""
    values = draw(np.random.default_rng(seed), n)
    while abs(values.mean() - right) > 1e-13:
        values = (values + right - values.mean()).clip(0, 1)
    return values


def stopped_graded(population: Floats, runs: int, seed: int) -> tuple[int, float]:
    """Return the number of wrong verdicts at 0.8 and the mean number of cases asked, looking after every one."""
    rng, gate = np.random.default_rng(seed), Gate("e3", (), "recall@5", ">=", 0.8, confidence=95.0)
    truth = "passed" if population.mean() >= 0.8 - 1e-12 else "failed"
    wrong = asked = 0
    for _ in range(runs):
        stop = EarlyStop(gate, len(population))
        for value in rng.permutation(population):
            stop.add(float(value))
            asked += 1
            if stop.state:
                break
        wrong += stop.state != truth
    return wrong, asked / runs


def beside(runs: int, seed: int, experiments: int = 6, cases: int = 60) -> tuple[float, float, float]:
    """Return how often an interval excludes 0 beside a p above 5 % by Holm: the 95 % one, and that corrected as p is.

    The last figure is the share of corrected intervals that hold the true difference. Pairs are of experiments that
    differ by 0 to 0.05.
    """
    rng, pairs = np.random.default_rng(seed), list(combinations(range(experiments), 2))
    means, seen = np.linspace(0, 0.05, experiments), []
    for _ in range(runs):
        values = rng.normal(means[:, None], 0.1, (experiments, cases))
        differences = [values[b] - values[a] for a, b in pairs]
        p = [t_outside(float(d.mean() / d.std(ddof=1) * np.sqrt(cases)), cases - 1) for d in differences]
        for d, value, count, (a, b) in zip(differences, p, holm_counts(p), pairs, strict=True):
            alone, (low, high) = difference_interval(d, (-1, 1)), difference_interval(d, (-1, 1), 1 - 0.05 / count)
            is_open = value * count > 0.05
            held = low <= means[b] - means[a] <= high
            seen.append((is_open and not alone.low <= 0 <= alone.high, is_open and not low <= 0 <= high, held))
    return tuple(np.mean(seen, axis=0).tolist())


def broken_lines(by_page: bool, runs: int, seed: int) -> Iterator[str]:
    """Yield the table of breaks, then the worst of the shapes that the goal is for."""
    worst: list[tuple[float, ...]] = []
    for shape in BROKEN:
        cells = []
        for n in BROKEN_CASES:
            wrong, unsafe, held = wrong_of_broken(shape, n, by_page, runs, seed)
            is_promised = shape[0] * n >= SEEN - 1e-9
            worst += [(wrong, unsafe, 1 - held)] if is_promised else []
            mark = "" if is_promised else " *"
            cells.append(f"{100 * wrong:.1f} / {100 * unsafe:.1f} · {100 * held:.1f}{mark}")
        yield f"| {shape[0]:.0%} by {shape[1]:g}, {shape[2]:g} | {' | '.join(cells)} |"
    wrong, unsafe, missed = (100 * max(column) for column in zip(*worst, strict=True))
    yield f"4 in n or more: wrong up to {wrong:.1f}, robust up to {unsafe:.1f}, held at least {100 - missed:.1f}"


def _table(title: str, shapes: dict[str, Draw], methods: dict[str, Bounds], runs: int, seed: int) -> None:
    print(f"\n{title}\n| {'| '.join(['what, n', *methods])}|")
    for name, draw in shapes.items():
        for n in CASES:
            found = wrong(draw, n, runs, seed, methods).values()
            cells = (f"{100 * low:.1f} / {100 * high:.1f}, {100 * held:.1f}" for low, high, held in found)
            print(f"| {name}, {n} | {' | '.join(cells)} |", flush=True)


def _seen(runs: int, seed: int) -> None:
    print("\nseen at 95 %: without assumptions, by the gate that asks which is better, by paired t")
    for mean, sd in ((0.05, 0.1), (0.02, 0.05)):
        for n in (20, 30, 40, 50, 60, 100, 200):
            shares = ", ".join(f"{share:.1%}" for share in decided(mean, sd, n, runs, seed))
            print(f"  N({mean}, {sd}), n = {n}: {shares}", flush=True)


def _forecasts(runs: int, seed: int) -> None:
    print("\ncases that are said to settle a gap, and how often they do (goal 75 to 85 %)")
    rng = np.random.default_rng(seed)
    for name, draw in [*list(SCORES.items())[:7], *list(DIFFERENCES.items())[:7]]:
        values = draw(rng, 100)
        n, share = forecast(values, 0.05, name in DIFFERENCES, runs, seed)
        print(f"  {name}, gap 0.05: {n} cases, {share:.1%}", flush=True)


def _clusters(runs: int, seed: int) -> None:
    by_cluster, alone = clustered(runs, seed)
    print(f"\n30 clusters of 5: {by_cluster:.1%} beyond the mean by cluster, {alone:.1%} without (goal 10 %)")


def _stops(runs: int, seed: int) -> None:
    print("\nearly stop at 0.8, 200 cases, looking after every one")
    for right in (0.5, 0.7, 0.795, 0.8, 0.85, 0.9, 0.95):
        share, median = stopped(right, runs, seed)
        print(f"  truly {right:<6} wrong {share:6.1%}, median stop at {median:.0f}", flush=True)


def _graded_stops(_: int, seed: int) -> None:
    print(f"\nearly stop at 0.8, 200 graded cases, {STOPS} runs")
    for name, draw in GRADED.items():
        for right in (0.795, 0.799, 0.8, 0.801, 0.805):
            count, asked = stopped_graded(near(draw, right, seed), STOPS, seed)
            ends = "{:.1%} to {:.1%}".format(*clopper_pearson(count, STOPS))
            print(f"  {name}, truly {right:<6} wrong {count / STOPS:6.1%} [{ends}], {asked:.0f} asked", flush=True)


def _beside(runs: int, seed: int) -> None:
    alone, corrected, held = beside(runs, seed)
    print(f"\nof 15 pairs, p by Holm above 5 % beside an interval without 0: {alone:.1%}, corrected {corrected:.1%}")
    print(f"corrected intervals hold the difference in {held:.1%}")


def _breaks(by_page: bool, runs: int, seed: int) -> None:
    name = "breaks by page" if by_page else "breaks"
    print(
        f"\n{name}: wrong / wrong with robust · held by the interval; *: rarer than 4 in n, where nothing is promised"
    )
    for line in broken_lines(by_page, runs, seed):
        print(line, flush=True)


TABLES: dict[str, Callable[[int, int], None]] = {
    "scores": partial(_table, "scores", SCORES, {"Student's t": students_t, "the harness": harness}),
    "times": partial(_table, "times", TIMES, {"Student's t": students_t, "the harness": harness_times}),
    "differences": partial(_table, "differences", DIFFERENCES, {"Student's t": students_t, "better": harness_better}),
    "breaks": partial(_breaks, False),
    "pages": partial(_breaks, True),
    "seen": _seen,
    "forecast": _forecasts,
    "clusters": _clusters,
    "stop": _stops,
    "graded": _graded_stops,
    "beside": _beside,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument("--only", choices=["", *TABLES], default="", help="a table")
    chosen = parser.parse_args()
    bounded.DRAWS = DRAWS
    print(
        f"seed {chosen.seed}, {chosen.runs} runs; wrong PASS / wrong FAIL at 95 %, and how often a 95 % interval holds "
        "the mean, in %"
    )
    for name, printed in TABLES.items():
        if chosen.only in ("", name):
            printed(chosen.runs, chosen.seed)


if __name__ == "__main__":
    main()
