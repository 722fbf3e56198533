"""The judged columns of a suite that a panel has judged: each judge's values, and the panel's made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.report.blocks.block import MeasureArrays, Reason
from rag_harness.report.blocks.scores import ScoreBlock
from rag_harness.report.columns import Growing
from rag_harness.report.panel_values import PanelValues
from rag_harness.results.panel_names import judge_label, silent_reason
from rag_harness.stats.panels import panel_values

Author = tuple[str, str, str]
_Rows = npt.NDArray[np.intp]
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
