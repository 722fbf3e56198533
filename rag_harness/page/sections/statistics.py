"""Describes the intervals, tests and corrections that a report uses. Sources are in docs/how-to/gates.md and stats/."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.run import Run

_INTERVALS = (
    "Intervals are 95 % ones, by the method that decides gates. Where every case is 0 or 1: Clopper and Pearson's "
    "(1934).",
    "Of any other share: weights drawn over the cases and one unseen case, as bad or as good as can be (Gaffke 2005).",
    "Of what has no range, times and costs: Student's t with a term for skewness (Johnson 1978).",
    "Of a quantile: two of the ordered values, by the binomial distribution (David & Nagaraja 2003); … is an end that "
    "the cases are too few to bound.",
    "A trial that raised or was lost counts the worst value that a measure has, if it has one. What a measure does not "
    "apply to, or what could not be measured, is in no mean, and is counted.",
)
_TESTS = (
    "Experiments are compared case by case, over the cases that both have a value of: Student's paired t-test (1908) "
    "and Fisher's randomization test beside it, 10,000 sign flips, seed 0, exact for few cases; of 50,000 differences "
    "or more the normal distribution of their sum.",
    "The interval of a difference is Student's with a term for skewness, that of gates; where fewer than ten cases "
    "differ, or one makes up more than a fifth of the squares, it is the one of a share.",
    "The t-test and its interval assume that no large difference is rarer than 4 in n, for n cases, or clusters of "
    "them, could miss it. A gate with @95% robust assumes no such thing, and needs more cases.",
    "d_z is the mean difference in standard deviations of the differences (Lakens 2013).",
    "p-values, and the intervals beside them, are adjusted by Holm's step-down method (1979) over a family of tests: "
    "the study's (G_mean and risk), all other judged measures, and the pairs of each measure that no judge gives. At "
    "0.05 a family has a chance of 5 % at most of one false alarm. An interval has the confidence that Holm judges its "
    "test at: 1 - 0.05 / k, where k tests are left.",
    "A difference is called significant where both tests stay at or below 0.05 after that.",
)
_SLICES = (
    "On slices every pair of experiments on every slice is one family: the same cases say which is the best there, so "
    "that the pairs of the best alone are no fair family. As many sign flips are drawn as the family needs."
)
_TAIL = "The tail of the risk has no test: its interval is a percentile bootstrap over cases, drawn with both values."
_RUNS = (
    "Runs are compared case by case too: the permutation test and the same intervals, adjusted by Holm over the "
    "measures of a suite."
)


def statistics(run: Run, runs: Sequence[Run]) -> list[str]:
    """Return the sentences about the statistics in this report."""
    is_tested = any(pair.found for pair in (*run.pairwise, *run.unjudged))
    has_tail = any(pair.quantile for pair in run.pairwise)
    sliced = [_SLICES] if run.standings.found else []
    several = [_RUNS] if len(runs) > 1 else []
    return [*_INTERVALS, *(_TESTS if is_tested else ()), *([_TAIL] if has_tail else []), *sliced, *several]
