"""Joins judged scores to their rows: columns of measures, composites, and the category of each answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.measures import Measure
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.correct import JUDGED, UNCHECKED, Correct, by_judge
from rag_harness.measures.expectation_measures import Expectations
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.measures.judged.categories import CATEGORY_MEASURES, UNMEASURED
from rag_harness.measures.judged.judged_expectations import NOT_JUDGED
from rag_harness.measures.metamorphic import CHECKER, MetamorphicMeasure
from rag_harness.report.answer_kinds import answer_kinds
from rag_harness.report.blocks.block import Mask, MeasureArrays, Reason, RowBlock
from rag_harness.report.blocks.scores import ScoreBlock
from rag_harness.report.columns import NOT_CHECKED, Growing
from rag_harness.report.composed import composed
from rag_harness.report.panel_columns import PanelColumns
from rag_harness.report.panel_values import PanelValues

_NOT_JUDGED: Reason = ("no judgement", False)
_Rows = npt.NDArray[np.intp]


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

        Repeated judgements are no scores; they are kept apart.
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
