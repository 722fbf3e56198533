"""Many gates in one run: how often at least one of them is wrong, though each keeps its promise.

    python benchmarks/many_gates.py [RUNS]

Each gate has cases of its own, 200 that are right or wrong. "At the threshold" the system is exactly as good as the
gate asks for, so that every verdict of a gate with @95% is wrong; without @ the system is better than the gate asks
for, 0.92 against 0.90, so that every failure is.
"""

from __future__ import annotations

import sys

import numpy as np

from rag_harness.stats.shares import share_bounds

CASES, THRESHOLD, BETTER = 200, 0.9, 0.92
GATES = (1, 5, 10, 20, 40)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(0)
    bounds = np.array([share_bounds(right, CASES, 0.95) for right in range(CASES + 1)])
    at = rng.binomial(CASES, THRESHOLD, (runs, max(GATES)))
    fails, passes = bounds[at, 1] < THRESHOLD, bounds[at, 0] >= THRESHOLD
    plain = rng.binomial(CASES, BETTER, (runs, max(GATES))) / CASES < THRESHOLD
    print(f"{runs:,} runs, {CASES} cases a gate; per cent of the runs in which at least one gate …")
    print("gates   @95%: failed wrongly   @95%: passed wrongly   without @: failed, 0.92 against 0.90")
    for gates in GATES:
        shares = [100 * wrong[:, :gates].any(axis=1).mean() for wrong in (fails, passes, plain)]
        print(f"{gates:>5}   {shares[0]:>20.1f}   {shares[1]:>20.1f}   {shares[2]:>38.1f}")


if __name__ == "__main__":
    main()
