"""How often is a race between configurations wrong, how many calls does it save, and what do its peers choose?

    python benchmarks/racing.py [simulations] [shared] [scenario]

Made-up pipelines: 16 configurations that answer right or wrong, .70 of the questions for the best. ``shared`` is the
part of a question's difficulty that is the same for all (0.8: two equal pipelines differ in 18 % of the questions;
0.9: in 12 %). Everything is held against the true values: those of all such questions, not those of the ones asked.

Calls are parts of the full grid's. "Same answer" is how often the chosen arm is the grid's best or one that the grid's
paired t-test (95 %, not corrected) does not tell from it. Regret is the best true value minus that of the chosen arm.

1. The race, with a look after each question; "by 8" counts its calls where arms leave only after each 8 questions.
   "Best left" is wrong where any of the true best is gone; "wrong name" where an arm is gone and the one named better
   is not; "not good" where an arm further below the best than the margin is called good enough.
2. Bets without replacement, over these questions only, by the same counts.
3. Peers: the grid with the best mean (AutoRAG's and LlamaIndex' rule), halving on common prefixes, elimination by
   uncorrected t-tests from 5 questions on (as irace), the race that ends at 35 % of the grid's calls,
   and the race that sets the worse half aside after an eighth, a quarter and half of the questions.
4. The winner of a race on one half: how often its 95 % interval holds its true value, from the other half and from its
   own.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.stats import mean_interval
from rag_harness.stats.distributions import t_quantile
from rag_harness.stats.sequential import RICHEST, STAKES, PairBets, Race, Which

Floats = npt.NDArray[np.float64]
BEST, SIZES, BATCH, BUDGET, MARGIN = 0.70, (200, 500, 1000), 8, 0.35, 0.05
SCENARIOS: Mapping[str, tuple[float, ...]] = {
    "4 each of gap 0, .02, .05, .1": (0.0,) * 4 + (0.02,) * 4 + (0.05,) * 4 + (0.1,) * 4,
    "1 best, 5 each of .02, .05, .1": (0.0,) + (0.02,) * 5 + (0.05,) * 5 + (0.1,) * 5,
    "all 16 tied": (0.0,) * 16,
}
Counts = dict[str, list[float]]


class World(NamedTuple):
    """One simulation: the true values of the arms, shape (K,), and right or wrong answers, shape (questions, K)."""

    truth: Floats
    answers: Floats

    def named(self, units: int, arms: Sequence[int]) -> int:
        """Return the arm with the best mean over the first units."""
        return max(arms, key=lambda arm: float(self.answers[:units, arm].mean()))


def draw(gaps: Sequence[float], shared: float, seed: int, questions: int = max(SIZES)) -> World:
    """Return a simulation with its arms in random order."""
    rng = np.random.default_rng(seed)
    truth = BEST - rng.permutation(np.array(gaps))
    ease = np.array([NormalDist().inv_cdf(value) for value in truth])
    common, own = rng.standard_normal((questions, 1)), rng.standard_normal((questions, len(gaps)))
    return World(truth, (ease + np.sqrt(shared) * common + np.sqrt(1 - shared) * own > 0).astype(float))


class FiniteBets(PairBets):
    """Bets over a population of questions that is asked to its end: each is against what is left in it."""

    def __init__(self, count: int, population: int) -> None:
        super().__init__(count, 0.0)
        self._left, self._gained = population, np.zeros((count, count))

    def take(self, values: Floats, among: Which) -> None:
        pairs = among[:, None] & among
        expected = np.clip(-self._gained / self._left, -1, 1)
        gains = np.where(pairs, values[:, None] - values, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where even the worst rest leaves i ahead of j, the bet is won for certain.
            bets = np.where(expected > -1, (gains - expected) / (1 + expected), RICHEST)
        np.fill_diagonal(bets, 0.0)
        self._better = np.minimum(self._better * (1 + STAKES * np.where(pairs, bets, 0.0)), RICHEST)
        self._gained, self._left = self._gained + gains, self._left - 1


def finite_race(population: int) -> Race:
    """Return a race that bets without replacement."""
    race = Race(NAMES)
    race._bets = FiniteBets(len(NAMES), population)
    return race


def raced(world: World, race: Race, units: int) -> Race:
    """Run a race to its end or over ``units``."""
    for unit in world.answers[:units].tolist():
        if race.state != "open":
            break
        race.add(dict(zip(NAMES, unit, strict=True)))
    return race


NAMES = tuple(map(str, range(16)))


def left_after(race: Race, n: int) -> list[int]:
    """Return the arms that were in the race after n units."""
    return [arm for arm, name in enumerate(NAMES) if name not in race.gone or race.gone[name].after > n]


def asked(race: Race, n: int, batch: int = 1) -> float:
    """Return the calls of the first n units, as a part of the grid's."""
    last = min(n, race.n)
    units = [min(race.gone[name].after if name in race.gone else last, last) for name in NAMES]
    return sum(min(-(-each // batch) * batch, n) for each in units) / (n * len(NAMES))


def halved(world: World, n: int) -> tuple[int, float, Race]:
    """Run a race that sets the worse half aside after n/8, n/4 and n/2 units; return its choice and its calls, too."""
    race, calls = Race(NAMES), 0
    for k, unit in enumerate(world.answers[:n].tolist()):
        if k in kept_after(n):
            ranked = sorted(race.left, key=lambda name: world.answers[:k, int(name)].mean())
            for name in ranked[: max(len(ranked) - kept_after(n)[k], 0)]:
                race.set_aside(name)
        if len(race.left) == 1:
            break
        calls += len(race.left)
        race.add(dict(zip(NAMES, unit, strict=True)))
    return world.named(race.n, [int(name) for name in race.left]), calls / (n * len(NAMES)), race


def kept_after(n: int) -> dict[int, int]:
    """Return after how many units how many arms are kept."""
    return {n // 8: 8, n // 4: 4, n // 2: 2}


class Grid(NamedTuple):
    """The full grid over n units: its best mean, and which arms its t-tests do not tell from that."""

    best: int
    same: npt.NDArray[np.bool_]


def grid(world: World, n: int) -> Grid:
    best = world.named(n, range(len(NAMES)))
    return Grid(best, ~below(world.answers[:n], best))


quantile = lru_cache(maxsize=None)(t_quantile)


def below(answers: Floats, best: int, confidence: float = 0.975) -> npt.NDArray[np.bool_]:
    """Return which arms a paired t-test shows to be below the best."""
    apart = answers[:, [best]] - answers
    error = apart.std(axis=0, ddof=1) / np.sqrt(len(answers))
    return np.asarray(apart.mean(axis=0) > quantile(confidence, len(answers) - 1) * np.maximum(error, 1e-9))


def halving(world: World, n: int) -> tuple[int, float]:
    """Return the arm chosen by successive halving on prefixes of n units, and its calls."""
    arms, calls, done = list(range(len(NAMES))), 0, 0
    for units in (n // 8, n // 4, n // 2, n):
        calls, done = calls + len(arms) * (units - done), units
        arms.sort(key=lambda arm: -world.answers[:units, arm].mean())
        arms = arms[: len(arms) // 2]
    return arms[0], calls / (n * len(NAMES))


def by_t_tests(world: World, n: int) -> tuple[int, float, bool]:
    """Return the arm chosen by elimination with uncorrected t-tests, its calls, and whether a best one is gone."""
    arms, calls = np.arange(len(NAMES)), 0
    for units in range(1, n + 1):
        calls += len(arms)
        if units >= 5 and len(arms) > 1:
            seen = world.answers[:units, arms]
            arms = arms[~below(seen, int(seen.mean(axis=0).argmax()))]
    best = np.flatnonzero(world.truth == world.truth.max())
    return world.named(n, arms.tolist()), calls / (n * len(NAMES)), not np.isin(best, arms).all()


def chosen(counts: Counts, world: World, arm: int, same: Grid, calls: float) -> None:
    """Count what a way of choosing has chosen."""
    counts["calls"].append(calls)
    counts["same answer"].append(same.same[arm])
    counts["regret"].append(world.truth.max() - world.truth[arm])


def claimed(counts: Counts, world: World, race: Race, n: int) -> None:
    """Count the wrong claims that a race has made after n units."""
    truth = dict(zip(NAMES, world.truth.tolist(), strict=True))
    gone = {name: each for name, each in race.gone.items() if each.after <= n}
    counts["best gone"].append(any(truth[name] == world.truth.max() for name in gone))
    counts["wrong name"].append(any(truth[each.better] <= truth[name] for name, each in gone.items()))
    counts["left"].append(len(NAMES) - len(gone))
    counts["over"].append(race.n < n or (race.n == n and race.state != "open"))


def of_races(world: World, cells: Mapping[str, Counts], margin: float) -> None:
    """Run the race once and count it at each size: it does not depend on how many units there will be."""
    race, too_low = Race(NAMES, margin=margin), False
    after: dict[int, tuple[bool, int]] = {}
    for n, unit in enumerate(world.answers.tolist(), 1):
        if race.state == "open":
            race.add(dict(zip(NAMES, unit, strict=True)))
            too_low |= any(world.truth.max() - world.truth[int(arm)] > margin + 1e-9 for arm in race.good_enough)
        after[n] = too_low, len(race.good_enough)
    for n in SIZES:
        counts = cells[f"race, margin {margin:g}, {n}"]
        chosen(counts, world, world.named(min(n, race.n), left_after(race, n)), grid(world, n), asked(race, n))
        counts["by 8"].append(asked(race, n, BATCH))
        claimed(counts, world, race, n)
        counts["not good"].append(after[n][0])
        counts["good"].append(after[n][1])


def of_finite(world: World, cells: Mapping[str, Counts]) -> None:
    """Run the race without replacement once for each size."""
    for n in SIZES:
        race = raced(world, finite_race(n), n)
        counts = cells[f"without replacement, {n}"]
        chosen(counts, world, world.named(race.n, left_after(race, n)), grid(world, n), asked(race, n))
        claimed(counts, world, race, n)


def of_peers(world: World, cells: Mapping[str, Counts]) -> None:
    """Run the peers, and the race within a budget, once for each size."""
    race = raced(world, Race(NAMES), max(SIZES))
    for n in SIZES:
        same = grid(world, n)
        chosen(cells[f"grid, best mean, {n}"], world, same.best, same, 1.0)
        chosen(cells[f"halving, {n}"], world, halving(world, n)[0], same, halving(world, n)[1])
        arm, calls, is_gone = by_t_tests(world, n)
        chosen(cells[f"t from 5 on, {n}"], world, arm, same, calls)
        cells[f"t from 5 on, {n}"]["best gone"].append(is_gone)
        units = next((k for k in range(n, 0, -1) if asked(race, k) * k <= BUDGET * n), 1)
        ended = cells[f"race, ended at 35 %, {n}"]
        chosen(
            ended, world, world.named(min(units, race.n), left_after(race, units)), same, asked(race, units) * units / n
        )
        claimed(ended, world, race, units)
        arm, calls, with_halving = halved(world, n)
        chosen(cells[f"race with halving, {n}"], world, arm, same, calls)
        claimed(cells[f"race with halving, {n}"], world, with_halving, n)


def of_winners(world: World, cells: Mapping[str, Counts]) -> None:
    """Race on one half, and take the winner's interval from the other, and from its own."""
    for n in SIZES:
        half = n // 2
        race = raced(world, Race(NAMES), half)
        arm = world.named(race.n, left_after(race, half))
        counts = cells[f"winner's interval, {n}"]
        for name, part in (("other half", world.answers[half:n, arm]), ("own half", world.answers[: race.n, arm])):
            low, high = mean_interval(part, (0, 1))
            counts[name].append(low <= world.truth[arm] <= high)
            counts[f"{name}, too high"].append(part.mean() - world.truth[arm])


PARTS: Sequence[Callable[[World, Mapping[str, Counts]], None]] = (
    lambda world, cells: of_races(world, cells, 0.0),
    lambda world, cells: of_races(world, cells, MARGIN),
    lambda world, cells: of_races(world, cells, 2 * MARGIN),
    of_finite,
    of_peers,
    of_winners,
)


def lines(gaps: Sequence[float], shared: float, runs: int) -> Iterator[str]:
    """Yield a line for each way and number of questions."""
    cells: defaultdict[str, Counts] = defaultdict(lambda: defaultdict(list))
    for seed in range(runs):
        world = draw(gaps, shared, seed)
        for part in PARTS:
            part(world, cells)
    for name, counts in sorted(cells.items(), key=lambda cell: list(cells).index(cell[0])):
        yield f"{name:<28}" + "  ".join(f"{what} {_shown(what, found)}" for what, found in counts.items())


def _shown(what: str, found: Sequence[float]) -> str:
    mean = float(np.mean(found))
    return (
        f"{mean:.1f}"
        if what in ("left", "good")
        else f"{mean:.4f}"
        if "regret" in what or "high" in what
        else f"{mean:.1%}"
    )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    shared = float(sys.argv[2]) if len(sys.argv) > 2 else 0.8
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    for name, gaps in SCENARIOS.items():
        if only not in name:
            continue
        two = draw((0.0, 0.0), shared, 0, 100_000).answers
        print(f"\n{name}; {runs} simulations, equal arms differ in {np.mean(two[:, 0] != two[:, 1]):.0%} of questions")
        for line in lines(gaps, shared, runs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
