"""Judged scores beside the rows that they are of: columns of measures, composites, and the kind of each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.measures import Score
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged import JudgedMeasure, category_of
from rag_harness.measures.judged.categories import PARTS
from rag_harness.measures.metamorphic import CHECKER, MetamorphicMeasure
from rag_harness.report.blocks.block import Block
from rag_harness.report.columns import Growing
from rag_harness.results.score import Author, ScoreLine, read_scores

_NOT_JUDGED = "no judgement"
_NOT_CHECKED = "no check: it was not sampled, or the run ended before"


class JudgedColumns:
    """The columns of a suite that are no row's to fill.

    Args:
        columns: all columns of the suite, by measure.
        authors: whose scores count: judge, model, revision.
        cases: how many there are in the data.

    """

    def __init__(self, columns: Mapping[str, Growing], authors: Sequence[tuple[str, str, str]], cases: int) -> None:
        self._columns = columns
        self._authors = {Author(*author) for author in authors}
        self._judged = {name: column for name, column in columns.items() if isinstance(column.measure, JudgedMeasure)}
        self._checked = {n: column for n, column in columns.items() if isinstance(column.measure, MetamorphicMeasure)}
        self._composites = [column for column in columns.values() if isinstance(column.measure, CompositeMeasure)]
        self._digests: dict[int, str] = {}
        self._said: dict[str, dict[str, dict[int, float | None]]] = {}
        self._abstained, self._answerable = np.zeros(cases, np.bool_), np.ones(cases, np.bool_)

    def note(self, block: Block, rows: npt.NDArray[np.intp]) -> None:
        """Note rows with an answer, whose scores are read later."""
        if self._judged or self._composites or self._checked:
            positions = block["position"][rows]
            self._digests |= zip(positions.tolist(), block.digests(rows), strict=True)
            self._abstained[positions], self._answerable[positions] = (
                block["abstained"][rows],
                block["answerable"][rows],
            )

    def read(self, file: Path, position_of: Mapping[str, int]) -> None:
        """Take the scores of ``file`` that are of these rows; of the same measure and row the last one holds."""
        for position, column, line in self._scores(file, position_of, self._judged):
            if line.author not in self._authors or not (column.is_open(position) or position in column.judged):
                continue
            if line.repeat:
                self._said.setdefault(line.measure, {}).setdefault(line.query_id, {})[line.repeat] = line.value
            else:
                column.judged.add(position)
                failed = line.value is None and not line.undefined
                reason = f"no verdict: {line.reason}" if failed else line.reason
                column.put(position, Score(line.value, reason, undefined=line.undefined))

    def read_checks(self, file: Path, position_of: Mapping[str, int]) -> None:
        """Take the scores of metamorphic checks that are of these rows."""
        for position, column, line in self._scores(file, position_of, self._checked):
            if line.author.judge == CHECKER:
                column.put(position, Score(line.value, line.reason, undefined=line.undefined))

    def _scores(
        self, file: Path, position_of: Mapping[str, int], columns: Mapping[str, Growing]
    ) -> Iterator[tuple[int, Growing, ScoreLine]]:
        """Yield the scores of ``file`` that are of these rows and ``columns``, and of measures as they are now."""
        for line in read_scores(file) if columns else ():
            position, column = position_of.get(line.query_id, -1), columns.get(line.measure)
            if column is not None and (self._digests.get(position), column.measure.version) == (line.row, line.version):
                yield position, column, line

    def close(self) -> None:
        """Say of rows without a score that there is none, and make composites of the others."""
        for position in self._digests:
            for column in self._judged.values():
                if column.is_open(position):
                    column.put(position, Score(None, _NOT_JUDGED))
            for column in self._checked.values():
                if column.is_open(position):
                    column.put(position, Score(None, _NOT_CHECKED, undefined=True))
            for column in self._composites:
                if column.is_open(position):
                    column.put(position, self._composed(column, position))

    def _composed(self, column: Growing, position: int) -> Score:
        measure: object = column.measure
        assert isinstance(measure, CompositeMeasure)
        parts = {name: self._score(name, position) for name in measure.parts}
        return measure.score(parts)

    def _score(self, name: str, position: int) -> Score:
        return self._columns[name].score_at(position) if name in self._columns else Score(None, _NOT_JUDGED)

    def said_again(self) -> dict[str, dict[str, list[float | None]]]:
        """Return what the judge said when it was asked again, by measure and case."""
        return {
            measure: {case: list(values.values()) for case, values in by_case.items()}
            for measure, by_case in self._said.items()
        }

    def categories(self) -> list[str] | None:
        """Return the kind of each answer, "" where there is none; None where its measures were never defined."""
        if not set(PARTS) <= set(self._judged) or not any(self._has_value(position) for position in self._digests):
            return None
        found = [""] * len(self._abstained)
        for position in self._digests:
            scores = {name: self._score(name, position) for name in PARTS}
            found[position] = category_of(scores, bool(self._abstained[position]), bool(self._answerable[position]))
        return found

    def _has_value(self, position: int) -> bool:
        return all(score.value is not None for score in self._parts_at(position))

    def _parts_at(self, position: int) -> Iterator[Score]:
        return (self._score(name, position) for name in PARTS)
