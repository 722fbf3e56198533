"""Judged scores read a line at a time into dictionaries: slow, plain, and what blocks are held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.evaluation.measures import Measure, Score
from rag_harness.evaluation.measures.judged import (
    ANSWERED_UNANSWERABLE,
    CATEGORY_MEASURES,
    CORRECT_ABSTENTION,
    RULES,
    UNCLASSIFIED,
    UNMEASURED,
    WRONG_ABSTENTION,
    JudgedMeasure,
)
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.evaluation.measures.metamorphic import CHECKER, MetamorphicMeasure
from rag_harness.records.scores import Author, ScoreLine, read_scores
from rag_harness.tables.blocks import RowBlock
from rag_harness.tables.judged_columns import Growing


class PlainColumn(Growing):
    """A column that takes one score at a time; ``judged`` are the cases whose score a judge gave."""

    def __init__(self, measure: Measure, cases: int) -> None:
        super().__init__(measure, cases)
        self.judged: set[int] = set()

    def put_one(self, position: int, score: Score) -> None:
        if score.value is not None:
            self._values[position], self._absent[position] = score.value, 0
            return
        self._values[position] = np.nan
        self._absent[position] = self._number(score.reason or "no value", score.undefined)

    def is_open_at(self, position: int) -> bool:
        return bool(np.isnan(self._values[position])) and not self._absent[position]

    def score_at(self, position: int) -> Score:
        if not self._absent[position]:
            return Score(float(self._values[position]))
        number = int(self._absent[position])
        return Score(None, list(self._reasons)[number], undefined=number not in self._unmeasured)


class LineByLine:
    """Stands in for ``JudgedColumns``."""

    def __init__(
        self,
        columns: Mapping[str, PlainColumn],
        authors: Sequence[tuple[str, str, str]],
        ids: Sequence[str],
        panel: str = "",
    ) -> None:
        assert not panel, "one judge's scores are read here"
        self.correct_by: dict[str, str] = {}
        self._columns, self._authors = columns, {Author(*author) for author in authors}
        self._position_of = {case_id: position for position, case_id in enumerate(ids)}
        self._judged = {n: column for n, column in columns.items() if isinstance(column.measure, JudgedMeasure)}
        self._checked = {n: column for n, column in columns.items() if isinstance(column.measure, MetamorphicMeasure)}
        self._composites = [column for column in columns.values() if isinstance(column.measure, CompositeMeasure)]
        self._digests: dict[int, str] = {}
        self._said: dict[str, dict[str, dict[int, float | None]]] = {}
        self._abstained, self._answerable = np.zeros(len(ids), np.bool_), np.ones(len(ids), np.bool_)

    def panels(self) -> dict[str, object]:
        return {}

    def note(self, block: RowBlock, rows: npt.NDArray[np.intp]) -> None:
        positions = block["position"][rows]
        digests = [each.tobytes().hex() for each in block["digest"][rows]]
        self._digests |= zip(positions.tolist(), digests, strict=True)
        self._abstained[positions] = block["abstained"][rows]
        self._answerable[positions] = block["answerable"][rows]

    def read(self, file: Path) -> None:
        for position, column, line in self._scores(file, self._judged):
            if line.author not in self._authors or not (column.is_open_at(position) or position in column.judged):
                continue
            if line.repeat:
                self._said.setdefault(line.measure, {}).setdefault(line.query_id, {})[line.repeat] = line.value
            else:
                column.judged.add(position)
                failed = line.value is None and not line.undefined
                reason = f"no verdict: {line.reason}" if failed else line.reason
                column.put_one(position, Score(line.value, reason, undefined=line.undefined))

    def read_checks(self, file: Path) -> None:
        for position, column, line in self._scores(file, self._checked):
            if line.author.judge == CHECKER:
                column.put_one(position, Score(line.value, line.reason, undefined=line.undefined))

    def _scores(self, file: Path, columns: Mapping[str, PlainColumn]) -> Iterator[tuple[int, PlainColumn, ScoreLine]]:
        for line in read_scores(file):
            position, column = self._position_of.get(line.query_id, -1), columns.get(line.measure)
            if column is not None and (self._digests.get(position), column.measure.version) == (line.row, line.version):
                yield position, column, line

    def close(self) -> None:
        for position in self._digests:
            for column in self._judged.values():
                if column.is_open_at(position):
                    column.put_one(position, Score(None, "no judgement"))
            for column in self._checked.values():
                if column.is_open_at(position):
                    why = "no check: it was not sampled, or the run ended before"
                    column.put_one(position, Score(None, why, undefined=True))
            for column in self._composites:
                if column.is_open_at(position):
                    column.put_one(position, self._composed(column.measure, position))

    def _composed(self, measure: Measure, position: int) -> Score:
        assert isinstance(measure, CompositeMeasure)
        return measure.score({name: self._score(name, position) for name in measure.parts})

    def _score(self, name: str, position: int) -> Score:
        return self._columns[name].score_at(position) if name in self._columns else Score(None, "no judgement")

    def said_again(self) -> dict[str, dict[str, list[float | None]]]:
        return {
            measure: {case: list(values.values()) for case, values in by_case.items()}
            for measure, by_case in self._said.items()
        }

    def categories(self) -> list[str] | None:
        if not set(CATEGORY_MEASURES) <= set(self._judged):
            return None
        found = [""] * len(self._abstained)
        for position in self._digests:
            scores = {name: self._score(name, position) for name in CATEGORY_MEASURES}
            found[position] = category_of(scores, bool(self._abstained[position]), bool(self._answerable[position]))
        return found if any(kind not in ("", UNMEASURED) for kind in found) else None


def category_of(scores: Mapping[str, Score], abstained: bool, answerable: bool) -> str:
    """Return the category of an answer; the first rule that holds, where two do."""
    if abstained:
        return WRONG_ABSTENTION if answerable else CORRECT_ABSTENTION
    if not answerable:
        # Whatever its scores are: they say how it keeps to its chunks, and no chunk has what was asked.
        return ANSWERED_UNANSWERABLE
    values = [scores[name].value for name in CATEGORY_MEASURES if name in scores]
    measured = [value for value in values if value is not None]
    if len(measured) < len(CATEGORY_MEASURES):
        return UNMEASURED
    return next((name for name, holds in RULES.items() if holds(*measured)), UNCLASSIFIED)
