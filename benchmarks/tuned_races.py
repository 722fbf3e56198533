"""The race of ``rag-harness tune`` whole, on simulated answers: wrong claims, calls, and what the choice costs.

    python benchmarks/tuned_races.py [SIMULATIONS]

``racing.py`` beside it looks at the statistics alone; this runs what the tuner runs: batches, halving, the last look.
16 configurations answer questions rightly or wrongly; those of one question share its difficulty. Default: 200
simulations a row, half a minute. All of it is counted against the true values of the population.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from scipy.stats import norm

from rag_harness.core.settings.configurations import ConfigurationSpec
from rag_harness.core.types import Case, Query
from rag_harness.diagnosis.tuning.race import Course, RaceResult, race
from rag_harness.diagnosis.tuning.space import Space
from rag_harness.diagnosis.tuning.trials import Contender, Values

MEASURE = "token_f1"
GAPS = {
    "4 each of 0, .02, .05, .1 below": [0.0] * 4 + [0.02] * 4 + [0.05] * 4 + [0.1] * 4,
    "1 best, 5 each of .02, .05, .1 below": [0.0] + [0.02] * 5 + [0.05] * 5 + [0.1] * 5,
    "all equal": [0.0] * 16,
}
QUESTIONS = (80, 200, 500)
SHARED, BEST = 0.8, 0.6


class Simulated(Values):
    """Values that come as numbers in place of rows."""

    def take(self, rows: Mapping[str, Any], cases: Sequence[Case], measures: Sequence[str]) -> None:
        """Take the values of the questions."""
        for case in cases:
            name = case.query.query_id
            self.of.setdefault(measures[0], {})[name] = float(rows[name])
            self.context[name] = 1


def raced(gaps: Sequence[float], questions: int, rng: np.random.Generator) -> tuple[RaceResult, dict[str, float]]:
    """Return what came of one race, and how far each configuration is below the best."""
    below = rng.permutation(np.array(gaps))
    count = len(below)
    drawn = SHARED**0.5 * rng.normal(size=(questions, 1)) + (1 - SHARED) ** 0.5 * rng.normal(size=(questions, count))
    right = drawn > norm.ppf(1 - (BEST - below))
    names = [f"c{number}" for number in range(count)]
    runners = [Contender(ConfigurationSpec(name), {"top_k": 1}, name) for name in names]

    def ask(still: Sequence[Contender], cases: Sequence[Case]) -> Mapping[str, Any]:
        return {
            each.name: {case.query.query_id: right[int(case.query.query_id), int(each.name[1:])] for case in cases}
            for each in still
        }

    course = Course([(Case(Query(str(number), "?")),) for number in range(questions)], [MEASURE])
    came = race(Space((), (MEASURE,)), runners, course, cast("Any", ask), lambda: False, lambda _: None)
    return came, dict(zip(names, below.tolist(), strict=True))


def chosen(came: RaceResult, names: Sequence[str]) -> str:
    """Return the configuration with the best mean of those that were asked to the end."""
    stayed = [name for name in names if name not in came.left and name not in came.aside]
    return max(stayed, key=lambda name: came.values[name].mean(MEASURE) or 0.0)


def main() -> None:
    """Print the table."""
    from rag_harness.diagnosis.tuning import race as racing

    cast("Any", racing).Values = Simulated
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{'':<38}{'questions':>9}{'wrong claim':>13}{'a best gone':>13}{'calls':>7}{'regret':>9}")
    for title, gaps in GAPS.items():
        for questions in QUESTIONS:
            rng = np.random.default_rng(questions)
            wrong = gone = 0
            calls, regret = [], []
            for _ in range(simulations):
                came, below = raced(gaps, questions, rng)
                wrong += any(below[name] <= below.get(left.better, 1.0) for name, left in came.left.items())
                gone += any(below[name] == 0 for name in came.left)
                calls.append(came.answered / (len(gaps) * questions))
                regret.append(below[chosen(came, list(below))])
            found = f"{wrong / simulations:>13.1%}{gone / simulations:>13.1%}{np.mean(calls):>7.0%}"
            print(f"{title:<38}{questions:>9}{found}{np.mean(regret):>9.4f}", flush=True)


if __name__ == "__main__":
    main()
