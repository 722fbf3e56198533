"""How many labelled answers a promise needs: by the same bound that makes the promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_harness.judges.calibration.confidence import MANY_ANSWERS, RISK, fit_models, split, split_shares
from rag_harness.judges.calibration.told import ToldAnswer
from rag_harness.stats.selective import answers_at_rate


class LabelsNeeded(NamedTuple):
    """The labels that a promise would need, if answers go on to be as right as they were.

    From ``threshold`` up, ``wrong`` of ``accepted`` answers were wrong. ``tested`` such answers are needed in the half
    that tests. ``labels`` are needed in all, since only a part of all answers is tested, and only a part of these
    reaches the threshold; ``more`` of them are not there yet.
    """

    threshold: float
    wrong: int
    accepted: int
    tested: int
    labels: int
    more: int


def labels_needed(told: Sequence[ToldAnswer], risk: float = RISK, seed: int = 0) -> LabelsNeeded | None:
    """Return the fewest labels over all thresholds; None if at each of them too many of the answers were wrong.

    The thresholds are those of the part that chooses one. ``tested`` is exact for its rate of wrong answers. ``labels``
    is an expectation: it takes as many of the next answers to reach the threshold as of these.
    """
    fit, chosen, _ = split(told, split_shares(len(told)), seed)
    models = fit_models(fit)
    pairs = [(models.probability(one), not one.right) for one in chosen if not one.declined]
    return min(_by_threshold(pairs, len(chosen), len(told), risk), key=lambda each: each.labels, default=None)


def _by_threshold(pairs: Sequence[tuple[float, bool]], answers: int, n: int, risk: float) -> Iterator[LabelsNeeded]:
    """Yield what each threshold would need; ``answers`` are in the part of ``pairs``, declined ones among them."""
    for threshold in sorted({stated for stated, _ in pairs}, reverse=True):
        taken = [is_wrong for stated, is_wrong in pairs if stated >= threshold]
        tested = answers_at_rate(sum(taken) / len(taken), risk)
        if tested is not None:
            labels = _labels(tested, len(taken) / answers)
            yield LabelsNeeded(threshold, sum(taken), len(taken), tested, labels, max(0, labels - n))


def _labels(tested: int, reaching: float) -> int:
    """Return of how many labels so many are tested. Half of the part for the threshold is."""
    few, many = (math.ceil(tested / (reaching * split_shares(n)[1] / 2) - 1e-9) for n in (0, MANY_ANSWERS))
    return few if few < MANY_ANSWERS else max(MANY_ANSWERS, many)
