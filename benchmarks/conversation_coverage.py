"""How often is a verdict about turns of conversations wrong, and how often does an interval hold the mean?

    python benchmarks/conversation_coverage.py [seed] [runs]

30 conversations of 5 turns, or of 3 to 7, whose turns are alike: with a chance of the root of rho a turn has the score
of its conversation, else one of its own, so that two turns of a conversation correlate by rho = 0.3. Scores are those
of benchmarks/verdicts.py. Drift: each turn is right with a chance that falls by 0.04. A verdict is wrong where a bound
at 95 % lies beyond the truth: PASS where the lower one does, FAIL where the upper one does. Goal: 94 % of intervals
hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from verdicts import DRAWS, SCORES, Draw

from rag_harness.stats import Interval, bounded, difference_bounds, mean_bounds
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.slopes import slope_parts, slope_values
from rag_harness.stats.students import skewed_t_bounds

Floats = npt.NDArray[np.float64]
RHO, CONVERSATIONS = 0.3, 30
LENGTHS: dict[str, tuple[int, int]] = {"30 of 5": (5, 5), "30 of 3 to 7": (3, 7)}
SHOWN = (
    "zero-inflated",
    "mostly zero",
    "mostly right, 80 %",
    "mostly right, 90 %",
    "two-point, 80 %",
    "two-point, 95 %",
)
FALL = -0.04


def sizes(rng: np.random.Generator, lengths: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the number of turns of each conversation."""
    return rng.integers(lengths[0], lengths[1] + 1, CONVERSATIONS)


def alike(rng: np.random.Generator, draw: Draw, turns: npt.NDArray[np.int64]) -> Floats:
    """Return the scores of all turns, in the order of the conversations."""
    n = int(turns.sum())
    shared = rng.random(n) < np.sqrt(RHO)
    return np.where(shared, np.repeat(draw(rng, CONVERSATIONS), turns), draw(rng, n))


def clusters_of(turns: npt.NDArray[np.int64]) -> list[int]:
    """Return the conversation of each turn."""
    return np.repeat(np.arange(CONVERSATIONS), turns).tolist()


Found = tuple[Interval, Interval]
"""The bounds at 95 % each, and the 95 % interval."""


def told(bounds: Callable[[float], Interval]) -> Found:
    """Return both."""
    return bounds(0.95), bounds(0.975)


def summed(found: Sequence[Found], truth: float) -> str:
    """Return wrong passes / failures at 95 %, and how many intervals hold the truth, in per cent."""
    passes = np.mean([low > truth + 1e-12 for (low, _), _ in found])
    failures = np.mean([high < truth - 1e-12 for (_, high), _ in found])
    held = np.mean([low - 1e-12 <= truth <= high + 1e-12 for _, (low, high) in found])
    return f"{passes:5.1%} / {failures:5.1%} · {held:6.1%}"


def means(seed: int, runs: int, lengths: tuple[int, int]) -> Iterator[tuple[str, str, str]]:
    """Yield name, figures by conversation, and figures as if each turn stood alone."""
    for name in SHOWN:
        rng = np.random.default_rng(seed)
        truth = float(SCORES[name](rng, 4_000_000).mean())
        drawn = [(turns := sizes(rng, lengths), alike(rng, SCORES[name], turns)) for _ in range(runs)]
        by = [told(lambda c, v=v, t=t: mean_bounds(v, (0, 1), c, clusters_of(t))) for t, v in drawn]  # type: ignore[misc]
        alone = [told(lambda c, v=v: mean_bounds(v, (0, 1), c)) for _, v in drawn]  # type: ignore[misc]
        yield name, summed(by, truth), summed(alone, truth)


def differences(seed: int, runs: int, lengths: tuple[int, int]) -> Iterator[tuple[str, str, str]]:
    """Yield the same of the difference of two pipelines that are equally good, by the test that ``>`` asks."""
    for name in SHOWN:
        rng = np.random.default_rng(seed)
        drawn = []
        for _ in range(runs):
            turns = sizes(rng, lengths)
            drawn.append((turns, alike(rng, SCORES[name], turns) - alike(rng, SCORES[name], turns)))
        by = [told(lambda c, v=v, t=t: difference_bounds(v, (-1, 1), c, clusters_of(t)).interval) for t, v in drawn]  # type: ignore[misc]
        alone = [told(lambda c, v=v: difference_bounds(v, (-1, 1), c).interval) for _, v in drawn]  # type: ignore[misc]
        yield f"of two {name}", summed(by, 0.0), summed(alone, 0.0)


def drifts(seed: int, runs: int, lengths: tuple[int, int]) -> str:
    """Return the figures of drift: each turn is right with a chance that falls from 0.9."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(runs):
        turns, parts = sizes(rng, lengths), {}
        for n, count in enumerate(turns.tolist()):
            shared = np.where(rng.random(count) < np.sqrt(RHO), rng.random(), rng.random(count))
            numbers = np.arange(1.0, count + 1)
            parts[str(n)] = slope_parts(numbers, (shared < 0.9 + FALL * (numbers - 1)).astype(float))
        values = [*slope_values({name: each for name, each in parts.items() if each}).values()]
        try:
            found.append(told(lambda c, v=values: skewed_t_bounds(v, c)))  # type: ignore[misc]
        except UndefinedError:
            found.append((Interval(-1, 1), Interval(-1, 1)))
    return summed(found, FALL)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("runs", nargs="?", type=int, default=1000)
    chosen = parser.parse_args()
    bounded.DRAWS = DRAWS
    for title, lengths in LENGTHS.items():
        print(f"{title}: wrong PASS / wrong FAIL · intervals that hold")
        for rows in (means, differences):
            for name, by, alone in rows(chosen.seed, chosen.runs, lengths):
                print(f"  {name:28} by conversation {by}   turns alone {alone}", flush=True)
        print(f"  {'drift of -0.04 a turn':28} by conversation {drifts(chosen.seed, chosen.runs, lengths)}", flush=True)


if __name__ == "__main__":
    main()
