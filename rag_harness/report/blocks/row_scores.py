"""Scores the rows of a block on one measure, one row after another."""

from __future__ import annotations

from math import nan

import numpy as np

from rag_harness.files.log import log
from rag_harness.measures import Measure, RankingMeasure, RowMeasure, Score, scored
from rag_harness.report.blocks.block import MeasureArrays, Reason
from rag_harness.results.cases import KeptCase
from rag_harness.results.row import ExperimentResult

NO_ANSWER = "no answer"
_OPEN = (nan, 0)


class RowScorer:
    """The scores of one measure on rows. Values of judges and rankings stay open: they are filled in later."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._found: list[tuple[float, int]] = []
        self._reasons: dict[Reason, int] = {("", True): 0}
        # Checked once here: isinstance with a protocol is slow, and each row would need it.
        self._by_row = measure if isinstance(measure, RowMeasure) and not isinstance(measure, RankingMeasure) else None

    def add(self, kept: KeptCase, row: ExperimentResult) -> None:
        """Score a row."""
        why = self.measure.applies(kept.case)
        if why:
            self._found.append(self._without(why))
        elif not row.ok:
            worst = self.measure.worst
            self._found.append(self._without(NO_ANSWER) if worst is None else (worst, 0))
        else:
            self._found.append(_OPEN if self._by_row is None else self._said(_scored(self._by_row, kept, row)))

    def scores(self) -> MeasureArrays:
        """Return the scores so far."""
        values, absent = zip(*self._found, strict=True) if self._found else ((), ())
        return MeasureArrays(np.array(values, dtype=np.float64), np.array(absent, dtype=np.uint16), list(self._reasons))

    def _said(self, score: Score) -> tuple[float, int]:
        if score.value is not None:
            return score.value, 0
        return self._without(score.reason or "no value", score.undefined)

    def _without(self, why: str, undefined: bool = True) -> tuple[float, int]:
        return nan, self._reasons.setdefault((why, undefined), len(self._reasons))


def _scored(measure: RowMeasure, kept: KeptCase, row: ExperimentResult) -> Score:
    """Score a row. Where the measure raises, the score has no value and says why."""
    try:
        return scored(measure, kept.case, row)
    except Exception as error:
        log.error("%s of %s failed", measure.name, row.trial_id, exc_info=error)
        return Score(None, f"no value, for the measure raised {type(error).__name__}: {error}")
