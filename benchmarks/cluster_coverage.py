"""How often is a verdict about questions of one page, or turns of one conversation, wrong?

    python benchmarks/cluster_coverage.py [seed] [runs]

Cases are alike within their cluster: with a chance of the root of rho a case has the score of its cluster, else one of
its own, so that two cases of a cluster correlate by rho = 0.33. Scores are 0 or 1 (80 % and 95 % are 1) and graded;
pairs are of two pipelines that are equally good, each with clusters of its own. Sizes of clusters: 5, 20, or unequal
(1 to 20, most of them small). A verdict is wrong where a bound at 95 % lies beyond the truth: PASS where the lower one
does, FAIL where the upper one does. Goal: 94 % of intervals hold, and at most 5.5 % are wrong on each side. Bounds
that are right in 95 % miss that by chance in some of 180 lines, so a line that misses is drawn again, with another seed
and six times the runs, and that counts. Beside each figure is what cases that stand alone would be given. The drift of
conversations has a table of its own: each turn is right with a chance that falls by 0.04. Weights are drawn 1,000 times
instead of 10,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from verdicts import DRAWS, SCORES, Draw

from rag_harness.stats import Interval, difference_bounds, mean_bounds
from rag_harness.stats import means as bounded
from rag_harness.stats.inputs import UndefinedError, slope_parts, slope_values
from rag_harness.stats.means import clustered_quantile_bounds, quantile, quantile_interval, skewed_t_bounds

Floats = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.int64]
Found = tuple[Interval, Interval]
"""The bounds at 95 % each, and the 95 % interval."""
RHO, HOLDS, WRONG, AGAIN = 0.33, 0.94, 0.055, 6
CASES = (20, 40, 100, 200, 400, 1000)
SHOWN = ("two-point, 80 %", "two-point, 95 %", "mostly right, 80 %", "mostly zero")
ANYTHING = Interval(-np.inf, np.inf)
CONVERSATIONS, FALL = 30, -0.04
LENGTHS = {"30 of 5": (5, 5), "30 of 3 to 7": (3, 7)}


def equal(size: int) -> Callable[[np.random.Generator, int], Sizes]:
    """Return what divides n cases into clusters of one size; the last one has the rest."""

    def divide(_: np.random.Generator, n: int) -> Sizes:
        found = [size] * (n // size)
        return np.array([*found, *([n % size] if n % size else [])])

    return divide


def unequal(rng: np.random.Generator, n: int) -> Sizes:
    """Divide n cases into clusters of 1 to 20, of which the small ones are the most."""
    found: list[int] = []
    while sum(found) < n:
        found.append(min(int(20 ** rng.random()), n - sum(found)))
    return np.array(found)


LAYOUTS = {"5 a page": equal(5), "20 a page": equal(20), "unequal": unequal}


def alike(rng: np.random.Generator, draw: Draw, sizes: Sizes) -> Floats:
    """Return the scores of all cases, in the order of their clusters."""
    n = int(sizes.sum())
    shared = rng.random(n) < np.sqrt(RHO)
    return np.where(shared, np.repeat(draw(rng, len(sizes)), sizes), draw(rng, n))


def told(bounds: Callable[[float], Interval]) -> Found:
    """Return the bounds at 95 %, and the 95 % interval; anything where the cases bound nothing."""
    try:
        return bounds(0.95), bounds(0.975)
    except UndefinedError:
        return ANYTHING, ANYTHING


class Figures:
    """Wrong passes, wrong failures and intervals that hold the truth, as shares of runs."""

    def __init__(self, found: list[Found], truth: float) -> None:
        self.passes = float(np.mean([low > truth + 1e-12 for (low, _), _ in found]))
        self.failures = float(np.mean([high < truth - 1e-12 for (_, high), _ in found]))
        self.held = float(np.mean([low - 1e-12 <= truth <= high + 1e-12 for _, (low, high) in found]))

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return self.held >= HOLDS and max(self.passes, self.failures) <= WRONG

    def __str__(self) -> str:
        return f"{self.passes:5.1%} / {self.failures:5.1%} · {self.held:6.1%}"


def means(rng: np.random.Generator, n: int, layout: str, name: str, runs: int) -> tuple[Figures, Figures]:
    """Return the figures of a mean by cluster, and as if each case stood alone."""
    draw = SCORES[name]
    truth, by, alone = float(draw(rng, 4_000_000).mean()), [], []
    for _ in range(runs):
        sizes = LAYOUTS[layout](rng, n)
        values, clusters = alike(rng, draw, sizes), np.repeat(np.arange(len(sizes)), sizes).tolist()
        by.append(told(lambda c, v=values, k=clusters: mean_bounds(v, (0, 1), c, k)))  # type: ignore[misc]
        alone.append(told(lambda c, v=values: mean_bounds(v, (0, 1), c)))  # type: ignore[misc]
    return Figures(by, truth), Figures(alone, truth)


def pairs(rng: np.random.Generator, n: int, layout: str, name: str, runs: int) -> tuple[Figures, Figures]:
    """Return the same of the difference of two pipelines that are equally good, by the test that ``>`` asks."""
    draw, by, alone = SCORES[name], [], []
    for _ in range(runs):
        sizes = LAYOUTS[layout](rng, n)
        values = alike(rng, draw, sizes) - alike(rng, draw, sizes)
        clusters = np.repeat(np.arange(len(sizes)), sizes).tolist()
        by.append(told(lambda c, v=values, k=clusters: difference_bounds(v, (-1, 1), c, k).interval))  # type: ignore[misc]
        alone.append(told(lambda c, v=values: difference_bounds(v, (-1, 1), c).interval))  # type: ignore[misc]
    return Figures(by, 0.0), Figures(alone, 0.0)


def quantiles(rng: np.random.Generator, n: int, layout: str, share: float, runs: int) -> tuple[Figures, Figures]:
    """Return the same of a quantile of log-normal times."""
    draw: Draw = lambda rng, n: rng.lognormal(0, 0.5, n)  # noqa: E731
    truth, by, alone = quantile(np.sort(draw(rng, 4_000_000)).tolist(), share), [], []
    for _ in range(runs):
        sizes = LAYOUTS[layout](rng, n)
        values, clusters = alike(rng, draw, sizes), np.repeat(np.arange(len(sizes)), sizes).tolist()
        by.append(told(lambda c, v=values, k=clusters: clustered_quantile_bounds(v, share, k, c)))  # type: ignore[misc]
        alone.append(told(lambda c, v=values: quantile_interval(v, share, 2 * c - 1)))  # type: ignore[misc]
    return Figures(by, truth), Figures(alone, truth)


def drifts(seed: int, runs: int, lengths: tuple[int, int]) -> Figures:
    """Return the figures of drift: each turn is right with a chance that falls from 0.9."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(runs):
        turns, parts = rng.integers(lengths[0], lengths[1] + 1, CONVERSATIONS), {}
        for n, count in enumerate(turns.tolist()):
            shared = np.where(rng.random(count) < np.sqrt(RHO), rng.random(), rng.random(count))
            numbers = np.arange(1.0, count + 1)
            parts[str(n)] = slope_parts(numbers, (shared < 0.9 + FALL * (numbers - 1)).astype(float))
        values = [*slope_values({name: each for name, each in parts.items() if each}).values()]
        found.append(told(lambda c, v=values: skewed_t_bounds(v, c)))  # type: ignore[misc]
    return Figures(found, FALL)


def lines() -> Iterator[tuple[str, Callable[[int, int], tuple[Figures, Figures]]]]:
    """Yield what is drawn, and what draws it: takes a seed and a number of runs."""
    for layout in LAYOUTS:
        for n in CASES:
            for name in SHOWN:
                yield f"{layout}, n = {n}, {name}", _drawing(means, n, layout, name)
                yield f"{layout}, n = {n}, of two {name}", _drawing(pairs, n, layout, name)
            for share in (0.5, 0.95):
                yield f"{layout}, n = {n}, p{share * 100:.0f} of times", _drawing(quantiles, n, layout, share)


def _drawing(
    draw: Callable[..., tuple[Figures, Figures]], n: int, layout: str, what: str | float
) -> Callable[[int, int], tuple[Figures, Figures]]:
    return lambda seed, runs: draw(np.random.default_rng(seed), n, layout, what, runs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("runs", nargs="?", type=int, default=1000)
    chosen = parser.parse_args()
    bounded.DRAWS = DRAWS
    print("wrong PASS / wrong FAIL at 95 % · 95 % intervals that hold\n")
    print(f"{'':44}{'by cluster':27}{'each case alone':27}")
    missed = 0
    for said, draw in lines():
        by, alone = draw(chosen.seed, chosen.runs)
        how = ""
        if not by.is_met:
            how = f" drawn again: it was {by}"
            by, alone = draw(chosen.seed + 1000, AGAIN * chosen.runs)
        missed += not by.is_met
        print(f"{said:44}{by!s:27}{alone!s:27}{'' if by.is_met else ' missed'}{how}", flush=True)
    for said, lengths in LENGTHS.items():
        print(f"{f'drift, {said}':44}{drifts(chosen.seed, chosen.runs, lengths)!s:27}")
    print(f"\n{missed} missed" if missed else "\nall met")


if __name__ == "__main__":
    main()
