"""How often does the interval of a panel's corrected mean hold the mean that people would give?

    python benchmarks/panel_coverage.py [draws]

Made-up answers: a truth that people see, and three judges who see it as well as ``quality`` (the correlation with it)
says; ``shared`` is the part of their errors that all three have in common. People give verdicts, of which a share is 1,
or ratings in five steps; judges give verdicts or probabilities. Each draw has 50 labels and 950 answers that only the
judges have seen, and asks whether a nominal 95 % interval holds the mean of all answers of that kind.

The last lines are of one judge, the first of the three, by the same function: what the other two add to the width.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.stats.agreement import panel_values
from rag_harness.stats.prediction import ppi_mean

Floats = npt.NDArray[np.float64]
LABELS, ANSWERS, JUDGES = 50, 1000, 3
SHARES = (0.5, 0.8, 0.9, 0.95)
QUALITIES = (0.3, 0.8)
SHARED = (0.0, 0.5, 0.95)


class World(NamedTuple):
    """Answers of one kind."""

    verdicts: bool
    hard: bool
    share: float
    quality: float
    shared: float

    def draw(self, rng: np.random.Generator, answers: int = ANSWERS) -> tuple[Floats, Floats]:
        """Return people's labels, shape (answers,), and the judges' scores, shape (answers, judges)."""
        truth, common = rng.standard_normal((2, answers))
        own = rng.standard_normal((answers, JUDGES))
        errors = np.sqrt(self.shared) * common[:, None] + np.sqrt(1 - self.shared) * own
        seen = self.quality * truth[:, None] + np.sqrt(1 - self.quality**2) * errors
        cut = NormalDist().inv_cdf(1 - self.share)
        labels = (truth > cut).astype(float) if self.verdicts else np.round(4 * _share(truth - cut)) / 4
        return labels, (seen > cut - 0.3).astype(float) if self.hard else _share(seen - cut)

    def mean(self) -> float:
        """Return the mean label of all such answers."""
        return self.share if self.verdicts else float(self.draw(np.random.default_rng(1), 2_000_000)[0].mean())


def _share(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-1.5 * x)))


def coverage(world: World, draws: int, judges: int = JUDGES, seed: int = 0) -> tuple[float, float]:
    """Return how often the interval holds the mean, and its mean half-width."""
    rng, truth = np.random.default_rng(seed), world.mean()
    held, widths = 0, 0.0
    for _ in range(draws):
        labels, scores = world.draw(rng)
        said = panel_values("mean", scores[:, :judges].T)
        found = ppi_mean(labels[:LABELS], said[:LABELS], said[LABELS:])
        assert found.interval is not None
        low, high = found.interval
        held += low <= truth <= high
        widths += (high - low) / 2
    return held / draws, widths / draws


def lines(draws: int, judges: int) -> Iterator[str]:
    """Yield a line for each kind and share, with a cell for each quality and shared part."""
    for name, verdicts, hard in (
        ("verdicts, verdicts", True, True),
        ("verdicts, shares", True, False),
        ("ratings", False, False),
    ):
        for share in SHARES:
            worlds = [World(verdicts, hard, share, quality, shared) for quality in QUALITIES for shared in SHARED]
            cells = [coverage(world, draws, judges) for world in worlds]
            yield f"{name:<20}{share:>6}  " + "  ".join(f"{held:6.1%} ±{width:.3f}" for held, width in cells)


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for judges in (JUDGES, 1):
        print(f"{judges} judges, {LABELS} labels, {draws} draws; coverage and half-width of nominal 95 %")
        print(f"{'quality, shared errors':<28}" + "  ".join(f"{q:>6} {s:<7}" for q in QUALITIES for s in SHARED))
        for line in lines(draws, judges):
            print(line, flush=True)


if __name__ == "__main__":
    main()
