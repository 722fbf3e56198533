"""Columns of a suite from its rows and judged scores: measures, composites, categories, panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan

import numpy as np
import numpy.typing as npt

from rag_harness.evaluation.measures import Measure, RankingMeasure, Score
from rag_harness.evaluation.measures.correctness import JUDGED, UNCHECKED, Correct, by_judge
from rag_harness.evaluation.measures.expectations import NOT_JUDGED, Expectations
from rag_harness.evaluation.measures.judged import (
    ANSWERED_UNANSWERABLE,
    CATEGORIES,
    CATEGORY_MEASURES,
    CORRECT_ABSTENTION,
    RULES,
    UNCLASSIFIED,
    UNMEASURED,
    WRONG_ABSTENTION,
    JudgedMeasure,
)
from rag_harness.evaluation.measures.measure import NO_RELEVANT, CompositeMeasure
from rag_harness.evaluation.measures.metamorphic import CHECKER, MetamorphicMeasure
from rag_harness.evaluation.measures.ranking_arrays import Found
from rag_harness.records.cases import StoredCase
from rag_harness.records.manifest import judge_label, silent_reason
from rag_harness.stats.agreement import panel_values
from rag_harness.tables.blocks import NO_ANSWER, Mask, MeasureArrays, Reason, RowBlock, ScoreBlock
from rag_harness.tables.suite_table import Column, PanelValues

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

    def lose(self, position: int, kept: StoredCase) -> None:
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
        """Return the numbers of the reasons that are due to answers. Only the first case with a reason is looked at."""
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


_A_VALUE: Reason = ("", True)


def composed(measure: CompositeMeasure, parts: Mapping[str, MeasureArrays]) -> MeasureArrays:
    """Return a composite of some rows, from the scores of its parts by name.

    Raises:
        ValueError: the formula gives NaN or infinity.
    """
    if type(measure).score is CompositeMeasure.score:
        return _of_formula(measure, [parts[name] for name in measure.parts])
    by_row = zip(*(_each(parts[name]) for name in measure.parts), strict=True)
    return _listed([measure.score(dict(zip(measure.parts, row, strict=True))) for row in by_row])


def _of_formula(measure: CompositeMeasure, parts: Sequence[MeasureArrays]) -> MeasureArrays:
    """Do what ``CompositeMeasure.score`` does, without an object a row. The first missing part gives the reason."""
    values, reasons = np.full(len(parts[0].values), nan), [_A_VALUE]
    absent = np.zeros(len(values), np.intp)
    for name, part in zip(measure.parts, parts, strict=True):
        lacks = (absent == 0) & (part.absent != 0)
        absent[lacks] = part.absent[lacks].astype(np.intp) + len(reasons)
        reasons += [(f"{name}: {why}", undefined) for why, undefined in part.reasons]
    whole = absent == 0
    rows = zip(*(part.values[whole].tolist() for part in parts), strict=True)
    values[whole] = [measure.combine(dict(zip(measure.parts, row, strict=True))) for row in rows]
    _check(values[whole])
    return MeasureArrays(values, absent, reasons)


def _check(values: npt.NDArray[np.float64]) -> None:
    for value in values[~np.isfinite(values)]:
        Score(float(value))  # raises an error that says what is wrong


def _each(part: MeasureArrays) -> list[Score]:
    lacking = [Score(None, why, undefined=undefined) for why, undefined in part.reasons]
    pairs = zip(part.values.tolist(), part.absent.tolist(), strict=True)
    return [lacking[number] if number else Score(value) for value, number in pairs]


def _listed(scores: Sequence[Score]) -> MeasureArrays:
    reasons: dict[Reason, int] = {}
    absent = [_number(score, reasons) for score in scores]
    values = [nan if score.value is None else score.value for score in scores]
    return MeasureArrays(np.array(values, np.float64), np.array(absent, np.intp), [_A_VALUE, *reasons])


def _number(score: Score, reasons: dict[Reason, int]) -> int:
    if score.value is not None:
        return 0
    return reasons.setdefault((score.reason or "no value", score.undefined), len(reasons) + 1)


def answer_kinds(parts: Sequence[MeasureArrays], abstained: Mask, answerable: Mask) -> list[str]:
    """Return the category of each answer. Where two rules hold, the first one counts.

    Args:
        parts: the scores of ``PARTS``, in their order.
        abstained: which answers decline.
        answerable: which questions the documents can answer.
    """
    lacks = np.logical_or.reduce([part.absent != 0 for part in parts])
    values = [part.values for part in parts]
    holds = {WRONG_ABSTENTION: abstained & answerable, CORRECT_ABSTENTION: abstained}
    holds |= {ANSWERED_UNANSWERABLE: ~answerable, UNMEASURED: lacks}
    holds |= {name: rule(*values) for name, rule in RULES.items()}
    numbers = np.select(
        list(holds.values()), [CATEGORIES.index(name) for name in holds], CATEGORIES.index(UNCLASSIFIED)
    )
    return [CATEGORIES[number] for number in numbers.tolist()]


Author = tuple[str, str, str]
_SILENT: Reason = ("no judgement", False)


class PanelColumns:
    """The values of each judge as they grow.

    Args:
        rule: how the panel decides.
        authors: its judges.
        columns: the judged columns of the suite.
        cases: number of cases.
    """

    def __init__(self, rule: str, authors: Sequence[Author], columns: Mapping[str, Growing], cases: int) -> None:
        self._rule, self._authors, self._cases = rule, authors, cases
        self._labels = [judge_label(judge, model) for judge, model, _ in authors]
        self._by_judge = {name: [Growing(column.measure, cases) for _ in authors] for name, column in columns.items()}
        self._again: dict[tuple[str, int, int], dict[Author, float]] = {}
        self.found: dict[str, PanelValues] = {}

    def put(self, measure: str, block: ScoreBlock, lines: _Rows, reasons: Sequence[Reason]) -> None:
        """Take scores of a measure by the judges of the panel."""
        for column, author in zip(self._by_judge[measure], self._authors, strict=True):
            own = lines[block.by([author])[lines]]
            column.put(block["position"][own], block.scores(own, reasons))

    def note_again(self, measure: str, block: ScoreBlock, lines: _Rows) -> None:
        """Take scores of repeated judgements."""
        for line in lines:
            key = measure, int(block["position"][line]), int(block["repeat"][line])
            said = self._again.setdefault(key, {})
            if not block["absent"][line]:
                said[block.texts.authors[int(block["author"][line])]] = float(block["value"][line])

    def said_again(self, ids: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
        """Return the panel's values of repeated judgements, by measure and case; None where a judge was silent."""
        found: dict[str, dict[str, list[float | None]]] = {}
        for (measure, position, _), said in self._again.items():
            whole = [[said[author]] for author in self._authors if author in said]
            value = float(panel_values(self._rule, whole)[0]) if len(whole) == len(self._authors) else None
            found.setdefault(measure, {}).setdefault(ids[position], []).append(value)
        return found

    def close(self, measure: str, column: Growing, positions: _Rows) -> None:
        """Put the panel's scores of the cases at ``positions`` into the column of the measure.

        A case has a value where every judge has one. It is undefined where every judge says so.
        """
        each = [judge.scores(positions) for judge in self._by_judge[measure]]
        values = np.array([scores.values for scores in each]).reshape(len(each), len(positions))
        is_there = ~np.isnan(values).any(axis=0)
        together = np.full(len(positions), np.nan)
        if is_there.any():
            together[is_there] = panel_values(self._rule, values[:, is_there])
        reasons: dict[Reason, int] = {("", True): 0}
        absent = np.zeros(len(positions), np.uint16)
        for place in np.flatnonzero(~is_there):
            absent[place] = reasons.setdefault(self._reason(each, int(place)), len(reasons))
        column.put(positions, MeasureArrays(together, absent, list(reasons)))
        undefined = np.array([undefined for _, undefined in reasons])
        by_case = np.full((len(each), self._cases), np.nan)
        by_case[:, positions] = values
        self.found[measure] = PanelValues(self._rule, self._authors, by_case, positions[~undefined[absent] | is_there])

    def _reason(self, each: Sequence[MeasureArrays], place: int) -> Reason:
        said: dict[str, Reason] = {}
        for label, scores in zip(self._labels, each, strict=True):
            if np.isnan(scores.values[place]):
                number = int(scores.absent[place])
                said[label] = scores.reasons[number] if number else _SILENT
        if len(said) == len(each) and all(undefined for _, undefined in said.values()):
            return next(iter(said.values()))
        why = silent_reason({label: why for label, (why, _) in said.items()}, len(each))
        return f"no verdict: {why}", False


_NOT_JUDGED: Reason = ("no judgement", False)


class JudgedColumns:
    """The columns of a suite that are not computed from rows alone.

    Args:
        columns: all columns of the suite, by measure.
        authors: judge, model and revision of the scores that count.
        ids: ids of all cases in the data.
        panel: how these judges decide together; empty where there is one.
    """

    def __init__(
        self,
        columns: Mapping[str, Growing],
        authors: Sequence[tuple[str, str, str]],
        ids: Sequence[str],
        panel: str = "",
    ) -> None:
        self._columns, self._ids = columns, ids
        self._authors = frozenset(authors)
        self._judged = _those(columns, JudgedMeasure)
        # A judge gives their values where rows do not tell.
        self._completed = _those(columns, Expectations)
        self._checked = _those(columns, MetamorphicMeasure)
        self._composites = _those(columns, CompositeMeasure)
        self._panel = PanelColumns(panel, authors, self._judged | self._completed, len(ids)) if panel else None
        self._order: list[_Rows] = []
        self._is_noted = np.zeros(len(ids), np.bool_)
        self._digests = np.zeros((len(ids), 3), np.uint32)
        self._said: dict[str, dict[str, dict[int, float | None]]] = {}
        self.correct_by: dict[str, str] = {}
        """What decided, by case, whether an answer is right that its row alone does not tell."""
        self._abstained, self._answerable = np.zeros(len(ids), np.bool_), np.ones(len(ids), np.bool_)

    def note(self, block: RowBlock, rows: _Rows) -> None:
        """Note rows with an answer. Their scores are read later."""
        if self._judged or self._composites or self._checked:
            positions = block["position"][rows].astype(np.intp)
            self._order.append(positions)
            self._is_noted[positions] = True
            self._digests[positions] = _in_words(block["digest"][rows])
            self._abstained[positions] = block["abstained"][rows]
            self._answerable[positions] = block["answerable"][rows]

    def read(self, blocks: Iterable[ScoreBlock]) -> None:
        """Take the scores of these rows by these authors. Of the same measure and row, the last score counts.

        Repeated judgements are not scores; they are stored apart.
        """
        is_open = {name: column.is_open() for name, column in self._judged.items()}
        is_open |= {name: column.lacks(NOT_JUDGED) for name, column in self._completed.items()}
        for block in blocks if self._judged else ():
            counts = self._is_of_rows(block) & block.by(self._authors)
            reasons = list(map(_judged_reason, block.texts.reasons))
            for name, column in (self._judged | self._completed).items():
                lines = block.of_measure(name, column.measure.version, counts)
                lines = lines[is_open[name][block["position"][lines]]]
                is_again = block["repeat"][lines] != 0
                if self._panel is not None:
                    self._panel.note_again(name, block, lines[is_again])
                    self._panel.put(name, block, lines[~is_again], list(map(_reason, block.texts.reasons)))
                    continue
                self._note_again(name, block, lines[is_again])
                _put(column, block, lines[~is_again], reasons)

    def read_checks(self, blocks: Iterable[ScoreBlock]) -> None:
        """Take the scores of metamorphic checks that belong to these rows."""
        for block in blocks if self._checked else ():
            counts = self._is_of_rows(block) & block.by_judge(CHECKER)
            reasons = list(map(_reason, block.texts.reasons))
            for name, column in self._checked.items():
                _put(column, block, block.of_measure(name, column.measure.version, counts), reasons)

    def _is_of_rows(self, block: ScoreBlock) -> Mask:
        """Return which scores belong to the noted rows: same case, and same digest of the judged fields."""
        positions = block["position"]
        same: Mask = (self._digests[positions] == _in_words(block["digest"])).all(axis=1)
        return same & self._is_noted[positions]

    def _note_again(self, measure: str, block: ScoreBlock, lines: _Rows) -> None:
        for line in lines:
            value = None if block["absent"][line] else float(block["value"][line])
            of_case = self._said.setdefault(measure, {}).setdefault(self._ids[block["position"][line]], {})
            of_case[int(block["repeat"][line])] = value

    def close(self) -> None:
        """Set the reason for rows without a score, and compute the composites."""
        if self._panel is not None:
            for name, column in self._judged.items():
                self._panel.close(name, column, self._open(column))
            for name, column in self._completed.items():
                if len(lacking := self._noted(column.lacks(NOT_JUDGED))):
                    self._panel.close(name, column, lacking)
        for column in self._judged.values():
            column.leave_out(self._open(column), _NOT_JUDGED)
        for column in self._checked.values():
            column.leave_out(self._open(column), NOT_CHECKED)
        for column in self._composites.values():
            self._compose(column, column.measure)
        for column in _those(self._columns, Correct).values():
            self._complete_by_judge(column)

    def _complete_by_judge(self, column: Growing) -> None:
        """Decide by a judge whether answers are right that rows alone do not tell."""
        for name in (name for name in JUDGED if name in self._columns):
            positions = self._noted(column.lacks(UNCHECKED))
            scores = self._columns[name].scores(positions)
            told = np.flatnonzero(scores.absent == 0)
            right = np.array([by_judge(name, value) for value in scores.values[told].tolist()])
            column.put(positions[told], MeasureArrays(right, np.zeros(len(told), np.intp), [("", True)]))
            self.correct_by |= {self._ids[place]: name for place in positions[told].tolist()}

    def _open(self, column: Growing) -> _Rows:
        """Return the noted cases without a score, in the order of their rows."""
        return self._noted(column.is_open())

    def _noted(self, those: Mask) -> _Rows:
        """Return which of ``those`` cases are noted, in the order of their rows."""
        rows = np.concatenate([np.zeros(0, np.intp), *self._order])
        found: _Rows = rows[those[rows]]
        return found

    def _compose(self, column: Growing, measure: Measure) -> None:
        assert isinstance(measure, CompositeMeasure)
        positions = self._open(column)
        column.put(positions, composed(measure, {name: self._scores(name, positions) for name in measure.parts}))

    def _scores(self, name: str, positions: _Rows) -> MeasureArrays:
        if name in self._columns:
            return self._columns[name].scores(positions)
        return MeasureArrays(
            np.full(len(positions), np.nan), np.ones(len(positions), np.uint8), [("", True), _NOT_JUDGED]
        )

    def said_again(self) -> dict[str, dict[str, list[float | None]]]:
        """Return the values of repeated judgements, by measure and case."""
        if self._panel is not None:
            return self._panel.said_again(self._ids)
        return {
            measure: {case: list(values.values()) for case, values in by_case.items()}
            for measure, by_case in self._said.items()
        }

    def panels(self) -> Mapping[str, PanelValues]:
        """Return what each judge of a panel has said, by measure; nothing where one judge has judged."""
        return self._panel.found if self._panel is not None else {}

    def categories(self) -> list[str] | None:
        """Return the category of each answer, "" where there is none; None where its measures were not judged.

        Without a context only those have one that decline, or that answer what the documents do not.
        """
        if not set(CATEGORY_MEASURES) <= set(self._judged):
            return None
        noted = np.flatnonzero(self._is_noted)
        parts = [self._scores(name, noted) for name in CATEGORY_MEASURES]
        kinds = answer_kinds(parts, self._abstained[noted], self._answerable[noted])
        if {*kinds} <= {UNMEASURED}:
            return None
        found = [""] * len(self._ids)
        for position, kind in zip(noted.tolist(), kinds, strict=True):
            found[position] = kind
        return found


def _those(columns: Mapping[str, Growing], kind: type[object]) -> dict[str, Growing]:
    return {name: column for name, column in columns.items() if isinstance(column.measure, kind)}


def _in_words(digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return digests of 12 bytes as 3 integers each, so that arrays compare them at once."""
    return np.ascontiguousarray(digests).view(np.uint32)


def _put(column: Growing, block: ScoreBlock, lines: _Rows, reasons: Sequence[Reason]) -> None:
    column.put(block["position"][lines], block.scores(lines, reasons))


def _reason(said: Reason) -> Reason:
    why, undefined = said
    return why or "no value", undefined


def _judged_reason(said: Reason) -> Reason:
    why, undefined = said
    return _reason((why if undefined else f"no verdict: {why}", undefined))
