"""A measure of every case, as the rows come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.files.log import log
from rag_harness.measures import Measure, RankingMeasure, RowMeasure, Score
from rag_harness.measures.ranking_arrays import Found
from rag_harness.report.suite_table import Column
from rag_harness.results.cases import KeptCase
from rag_harness.results.row import ExperimentResult

_MOST_REASONS = 250
_OTHERS = "no verdict for another reason", "another reason"
"""Names of reasons beyond these: of what could have a value, and of what is undefined."""
_NO_ANSWER, _NO_ROW = "no answer", "no row"


class Growing:
    """A column as it grows; ``judged`` are the cases whose score a judge gave."""

    def __init__(self, measure: Measure, cases: int) -> None:
        self.measure = measure
        self._values = np.full(cases, np.nan)
        self._absent = np.zeros(cases, dtype=np.uint8)
        self._reasons = {"": 0}
        self._unmeasured: set[int] = set()
        self.judged: set[int] = set()
        # Protocols are slow to ask, and every row would ask.
        self._by_row = measure if isinstance(measure, RowMeasure) and not isinstance(measure, RankingMeasure) else None

    def add(self, position: int, kept: KeptCase, row: ExperimentResult | None) -> None:
        """Score a row; None is that of a lost case."""
        why = self.measure.applies(kept.case)
        if why:
            self._leave_out(position, why)
        elif row is None or not row.ok:
            self._without_answer(position, _NO_ROW if row is None else _NO_ANSWER)
        elif self._by_row is not None:
            self.put(position, _scored(self._by_row, kept, row))

    def fill(self, found: Found, positions: Sequence[int]) -> None:
        """Score all rankings at once; ``positions`` says which cases they are of."""
        if not isinstance(self.measure, RankingMeasure) or not positions:
            return
        where, values = np.array(positions), self.measure.batch(found)
        applies = self._absent[where] == 0
        self._values[where[applies]] = values[applies]

    def finished(self, unmet: str) -> Column:
        """Return the column; without a value where the experiment never does what the measure ``unmet`` needs."""
        if unmet:
            self._values[:] = np.nan
            self._absent[:] = self._number(unmet)
            self._unmeasured.clear()
        return Column(self.measure, self._values, self._absent, list(self._reasons), frozenset(self._unmeasured))

    def _without_answer(self, position: int, why: str) -> None:
        if self.measure.worst is None:
            self._leave_out(position, why)
        else:
            self._values[position] = self.measure.worst

    def put(self, position: int, score: Score) -> None:
        """Note the score of a case, in place of one that was there."""
        if score.value is not None:
            self._values[position], self._absent[position] = score.value, 0
            return
        self._values[position] = np.nan
        self._leave_out(position, score.reason or "no value", _OTHERS[score.undefined])
        if not score.undefined:
            self._unmeasured.add(int(self._absent[position]))

    def is_open(self, position: int) -> bool:
        """Whether a case has neither a value nor a reason for having none."""
        return bool(np.isnan(self._values[position])) and not self._absent[position]

    def score_at(self, position: int) -> Score:
        """Return the score of a case that is not open."""
        if not self._absent[position]:
            return Score(float(self._values[position]))
        number = int(self._absent[position])
        return Score(None, self._names[number], undefined=number not in self._unmeasured)

    def _leave_out(self, position: int, why: str, other: str = _OTHERS[True]) -> None:
        self._absent[position] = self._number(why, other)

    @property
    def _names(self) -> list[str]:
        return list(self._reasons)

    def _number(self, why: str, other: str = _OTHERS[True]) -> int:
        known = why if why in self._reasons or len(self._reasons) < _MOST_REASONS else other
        return self._reasons.setdefault(known, len(self._reasons))


def _scored(measure: RowMeasure, kept: KeptCase, row: ExperimentResult) -> Score:
    """Score a row; a measure that raises has not measured, and says so."""
    try:
        return measure.score(kept.case, row)
    except Exception as error:
        log.error("%s of %s failed", measure.name, row.trial_id, exc_info=error)
        return Score(None, f"no value, for the measure raised {type(error).__name__}: {error}")
