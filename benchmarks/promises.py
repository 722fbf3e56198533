"""How often is a verdict on a promise over repeats wrong?

    python benchmarks/promises.py [seed] [runs]

Each case has a chance of being right, which is drawn from one of six populations, and is tried n times. The truth is
the mean of chance^k over the population. A verdict is wrong where a bound lies beyond it: PASS where the lower one
does, FAIL where the upper one does. Goal: 5 % each at 95 %. Beside that, what goes wrong where tries are taken for
cases: the share of right tries, with Clopper & Pearson's bounds of that many tries, to the power of k.

Where k = n the bounds are exact and quick, and five times as many runs are made. Else they come
from 10,000 draws, as a gate's do. Equal seeds make equal draws, so fewer of them would move all bounds of a line
together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats import Interval, clopper_pearson, mean_bounds
from rag_harness.stats.distributions import all_right, flips, worst_of

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Value = Callable[[Floats], Floats]
"""Returns one value a case, from the scores of its tries, shape (cases, tries)."""
CASES = (40, 200)
KS = (2, 3, 5)


class Population(NamedTuple):
    """Chances of being right: how they are drawn, and the mean of chance^k."""

    draw: Draw
    moment: Callable[[int], float]


def two_kinds(share: float, one: float, other: float) -> Population:
    """Return a population of which ``share`` has one chance, the rest the other."""
    return Population(
        lambda rng, n: np.where(rng.random(n) < share, one, other),
        lambda k: share * one**k + (1 - share) * other**k,
    )


def beta(a: float, b: float) -> Population:
    """Return a population whose chances have a beta distribution."""
    return Population(
        lambda rng, n: rng.beta(a, b, n),
        lambda k: float(np.prod([(a + i) / (a + b + i) for i in range(k)])),
    )


CHANCES = {
    "all alike, 0.9": two_kinds(1.0, 0.9, 0.9),
    "80 % sure, others 0.5": two_kinds(0.8, 1.0, 0.5),
    "97 % sure, others 0.3": two_kinds(0.97, 1.0, 0.3),
    "10 % never, others 0.97": two_kinds(0.1, 0.0, 0.97),
    "skewed, Beta(8, 1)": beta(8, 1),
    "sure or hopeless, Beta(0.5, 0.5)": beta(0.5, 0.5),
}


def tries_of(chances: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return the score of each try, shape (cases, n): 1 where it is right, else anything below."""
    right = rng.random((len(chances), n)) < chances[:, None]
    return np.where(right, 1.0, rng.random((len(chances), n)))


def wrong(draw: Draw, value: Value, truth: float, cases: int, n: int, runs: int, seed: int) -> tuple[float, float]:
    """Return the share of wrong PASS and of wrong FAIL at 95 %."""
    rng, outside = np.random.default_rng(seed), np.zeros(2)
    known: dict[bytes, Interval] = {}
    for _ in range(runs):
        values = np.sort(value(tries_of(draw(rng, cases), n, rng)))
        key = values.tobytes()
        if key not in known:
            known[key] = mean_bounds(values, (0, 1), 0.95)
        outside += known[key].low > truth + 1e-12, known[key].high < truth - 1e-12
    return float(outside[0] / runs), float(outside[1] / runs)


def as_if_tries_were_cases(draw: Draw, truth: float, cases: int, n: int, k: int, runs: int, seed: int) -> float:
    """Return the share of wrong verdicts of the share of right tries to the power of k."""
    rng, outside = np.random.default_rng(seed), 0
    for _ in range(runs):
        right = int((tries_of(draw(rng, cases), n, rng) == 1).sum())
        low, high = clopper_pearson(right, cases * n, 0.9)
        outside += low**k > truth or high**k < truth
    return outside / runs


def right_of(scores: Floats, k: int) -> Floats:
    """Return pass^k of each case."""
    return all_right(scores == 1, k)


def flips_of(scores: Floats) -> Floats:
    """Return flip_rate of each case."""
    return flips(scores == 1)


def lowest_of_3(moment: Callable[[int], float]) -> float:
    """Return the mean lowest score of 3 tries: of j wrong ones it is 1 / (j + 1), without a wrong one 1."""
    found = 0.0
    for j in range(4):
        # chance^(3 - j) (1 - chance)^j, written out in powers of the chance
        mean = sum(comb(j, i) * (-1) ** i * moment(3 - j + i) for i in range(j + 1))
        found += comb(3, j) * mean / (j + 1)
    return found


def main() -> None:
    """Print a line for each promise, number of tries, and number of cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("runs", nargs="?", type=int, default=4000)
    given = parser.parse_args()
    print("of 95 %: wrong PASS / wrong FAIL in %; the highest of the six populations, then tries taken for cases")
    for k in KS:
        for n in (k, 2 * k):
            for cases in CASES:
                found, naive = {}, {}
                for name, (draw, moment) in CHANCES.items():
                    truth = moment(k)
                    found[name] = wrong(
                        draw, partial(right_of, k=k), truth, cases, n, given.runs * (5 if n == k else 1), given.seed
                    )
                    naive[name] = as_if_tries_were_cases(draw, truth, cases, n, k, given.runs // 20, given.seed)
                print_line(f"pass^{k}", n, cases, found, f"{100 * max(naive.values()):.0f} ({worst(naive)})")
    others: list[tuple[str, Value, Callable[[Callable[[int], float]], float]]] = [
        ("worst_of_3", partial(worst_of, k=3), lowest_of_3),
        ("flip_rate", flips_of, lambda moment: 2 * (moment(1) - moment(2))),
    ]
    for name, value, true in others:
        for cases in CASES:
            found = {}
            for chances, (draw, moment) in CHANCES.items():
                found[chances] = wrong(draw, value, true(moment), cases, 5, given.runs, given.seed)
            print_line(name, 5, cases, found, "")


def worst(found: dict[str, float]) -> str:
    """Return the population that a method goes wrong on most often."""
    return max(found, key=lambda name: found[name])


def print_line(what: str, n: int, cases: int, found: dict[str, tuple[float, float]], naive: str) -> None:
    """Print the highest shares, in per cent, with every population's behind them."""
    passed, failed = (max(each[side] for each in found.values()) for side in (0, 1))
    every = "  ".join(f"{100 * a:.1f}/{100 * b:.1f}" for a, b in found.values())
    print(
        f"{what:<11} n={n:<3} cases={cases:<4} {100 * passed:4.1f} / {100 * failed:4.1f}   {naive:<45} {every}",
        flush=True,
    )


if __name__ == "__main__":
    main()
