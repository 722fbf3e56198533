"""The column of a measure: its value for every case, filled from blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.measures import Measure, RankingMeasure
from rag_harness.measures.measure import NO_RELEVANT
from rag_harness.measures.ranking_arrays import Found
from rag_harness.report.blocks.block import Mask, MeasureArrays, Reason, RowBlock
from rag_harness.report.blocks.row_scores import NO_ANSWER
from rag_harness.report.suite_table import Column
from rag_harness.results.cases import KeptCase

_MOST_REASONS = 250
_OTHERS = "no verdict for another reason", "another reason"
"""Reasons beyond the first 250 get these names: the first where a value was possible, the second where undefined."""
_NO_ROW = "no row"
TAKEN_OUT = "a simulated user that left its role"
"""Why a conversation has no value."""
NOT_CHECKED: Reason = ("no check: it was not sampled, or the run ended before", True)
_AT_FIRST_TURN = "its conversation's value at the first turn"
_OF_NO_ANSWER = frozenset([_NO_ROW, _AT_FIRST_TURN, TAKEN_OUT, NOT_CHECKED[0]])
_REASONS: Sequence[Reason] = (("", True), (NO_RELEVANT, True), (NO_ANSWER, True))
_Rows = npt.NDArray[np.intp]


class Growing:
    """A column as it grows."""

    def __init__(self, measure: Measure, cases: int) -> None:
        self.measure = measure
        self._values = np.full(cases, np.nan)
        self._absent = np.zeros(cases, dtype=np.uint8)
        self._reasons = {"": 0}
        self._unmeasured: set[int] = set()

    def take(self, block: RowBlock, rows: _Rows, found: Found) -> None:
        """Add the scores of some rows of a block. ``found`` has the rankings of those with an answer."""
        scores, positions = block.scores(self.measure.name), block["position"][rows]
        ok = block["ok"][rows]
        applies = block["relevant"][rows] if isinstance(self.measure, RankingMeasure) else np.ones(len(rows), np.bool_)
        taken = scores.of(rows) if scores is not None else _without_column(self.measure, ok, applies)
        self._absent[positions] = self._numbers(taken)[taken.absent]
        self._values[positions] = taken.values
        if isinstance(self.measure, RankingMeasure):
            values, is_open = self.measure.batch(found), taken.absent[ok] == 0
            self._values[positions[ok][is_open]] = values[is_open]

    def lose(self, position: int, kept: KeptCase) -> None:
        """Note a case without a row."""
        why = self.measure.applies(kept.case)
        if not why and self.measure.worst is not None:
            self._values[position] = self.measure.worst
        else:
            self._absent[position] = self._number(why or _NO_ROW)

    def finished(self, why_not: Callable[[int], str]) -> Column:
        """Return the column. ``why_not`` says why the question of a case, by its place, does not allow the measure."""
        return Column(
            self.measure,
            self._values,
            self._absent,
            list(self._reasons),
            frozenset(self._unmeasured),
            self._by_answer(why_not) - self._unmeasured,
        )

    def _by_answer(self, why_not: Callable[[int], str]) -> frozenset[int]:
        """Return the numbers of the reasons that lie in answers. The first case with a reason stands for all."""
        numbers, first = np.unique(self._absent, return_index=True)
        known = {number: why for why, number in self._reasons.items()}
        asked = (each for each in zip(numbers.tolist(), first.tolist(), strict=True) if each[0])
        return frozenset(n for n, place in asked if known[n] not in _OF_NO_ANSWER and not why_not(place))

    def without_any(self, why: str) -> Column:
        """Return a column without a value. ``why`` says what the experiment lacks for the measure."""
        size = len(self._values)
        return Column(self.measure, np.full(size, np.nan), np.ones(size, np.uint8), ["", why])

    def put(self, positions: _Rows, scores: MeasureArrays) -> None:
        """Set the scores of cases, in place of earlier ones. Where a case comes twice, its last score counts."""
        numbers = self._numbers(scores)[scores.absent]
        _, from_the_end = np.unique(positions[::-1], return_index=True)
        last = len(positions) - 1 - from_the_end
        self._values[positions[last]], self._absent[positions[last]] = scores.values[last], numbers[last]

    def leave_out(self, positions: _Rows, reason: Reason) -> None:
        """Set the reason why cases have no value."""
        if len(positions):
            self._absent[positions] = self._number(*reason)

    def gather(self, conversations: Iterable[Sequence[int]], without: Callable[[int], str]) -> None:
        """Leave one value to a conversation: the best of its turns, at the first. ``without`` says why it has none."""
        for turns in conversations:
            first, values = turns[0], self._values[list(turns)]
            if why := without(first):
                self._values[first], self._absent[first] = np.nan, self._number(why)
            elif not np.isnan(values).all():
                self._values[first], self._absent[first] = np.nanmax(values), 0
            later = list(turns[1:])
            self._values[later], self._absent[later] = np.nan, self._number(_AT_FIRST_TURN)

    def is_open(self) -> Mask:
        """Return which cases have neither a value nor a reason for having none."""
        open_: Mask = np.isnan(self._values) & (self._absent == 0)
        return open_

    def lacks(self, why: str) -> Mask:
        """Return which cases have no value for this reason."""
        lacking: Mask = self._absent == self._reasons.get(why, -1)
        return lacking

    def scores(self, positions: _Rows) -> MeasureArrays:
        """Return the scores of cases."""
        reasons = [(why, number not in self._unmeasured) for number, why in enumerate(self._reasons)]
        return MeasureArrays(self._values[positions], self._absent[positions], reasons)

    def _numbers(self, scores: MeasureArrays) -> npt.NDArray[np.uint8]:
        """Return the column's number for each of the block's reasons. New reasons get the next numbers."""
        numbers = np.zeros(len(scores.reasons), dtype=np.uint8)
        used, first = np.unique(scores.absent, return_index=True)
        for reason in used[np.argsort(first)]:
            numbers[reason] = self._number(*scores.reasons[reason]) if reason else 0
        return numbers

    def _number(self, why: str, undefined: bool = True) -> int:
        known = why if why in self._reasons or len(self._reasons) < _MOST_REASONS else _OTHERS[undefined]
        number = self._reasons.setdefault(known, len(self._reasons))
        if not undefined:
            self._unmeasured.add(number)
        return number


def _without_column(measure: Measure, ok: Mask, applies: Mask) -> MeasureArrays:
    """Return scores for a measure without a column in the block. Rankings and judges fill in the open values."""
    worst, failed = measure.worst, applies & ~ok
    values, absent = np.full(len(ok), np.nan), np.where(applies, 0, 1).astype(np.uint16)
    if worst is None:
        absent[failed] = 2
    else:
        values[failed] = worst
    return MeasureArrays(values, absent, _REASONS)
