"""Many gates in one run: how often at least one of them is wrong, although each keeps its own error rate.

    python benchmarks/many_gates.py [RUNS]

Each gate has its own 200 cases, each right or wrong. "At the threshold" the system is exactly as good as the gate
requires, so every verdict of a gate with @95% is wrong. Without @ the system is better than required, 0.92 against
0.90, so every failure is wrong. With --rag-family=0.95 the gates are judged together, by Holm's steps.
"""

from __future__ import annotations

import sys

import numpy as np

from rag_harness.stats import holm
from rag_harness.stats.distributions import binomial_distribution, share_bounds

CASES, THRESHOLD, BETTER = 200, 0.9, 0.92
GATES = (1, 5, 10, 20, 40)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    bounds = np.array([share_bounds(right, CASES, 0.95) for right in range(CASES + 1)])
    at = rng.binomial(CASES, THRESHOLD, (runs, max(GATES)))
    fails, passes = bounds[at, 1] < THRESHOLD, bounds[at, 0] >= THRESHOLD
    plain = rng.binomial(CASES, BETTER, (runs, max(GATES))) / CASES < THRESHOLD
    below = binomial_distribution(CASES, THRESHOLD)
    above = 1 - np.concatenate([[0.0], below[:-1]])
    print(f"{runs:,} runs, {CASES} cases a gate; per cent of the runs in which at least one gate …")
    print("gates   @95%: failed   @95%: passed   together: failed   together: passed   without @: failed, 0.92")
    for gates in GATES:
        shares = [100 * wrong[:, :gates].any(axis=1).mean() for wrong in (fails, passes, plain)]
        p = np.minimum(below, above)[at[:, :gates]]
        sure = np.array([holm(each) for each in p]) <= 0.05
        is_low = (below < above)[at[:, :gates]]
        together = [100 * (sure & side).any(axis=1).mean() for side in (is_low, ~is_low)]
        cells = (shares[0], shares[1], *together, shares[2])
        print(f"{gates:>5}{''.join(f'{cell:>15.1f}' for cell in cells)}")


if __name__ == "__main__":
    main()
