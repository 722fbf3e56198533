"""Judges answers of a race, for objectives and constraints that a judge answers: an opinion an answer, kept like it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_harness.derived.tuning.asking import Asking, JudgedRows, RowsByQuery
from rag_harness.derived.tuning.contenders import Contender
from rag_harness.errors import CriticalError
from rag_harness.measures import Score, is_judged, measure_named, parts_of
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case

if TYPE_CHECKING:
    from rag_harness.derived.derived_runs import DerivedRuns
    from rag_harness.engine.row_judging import JudgedRow
    from rag_harness.pipelines.parts import RunParts

_BUDGET = "budget"


class RaceJudging:
    """The judge of a race.

    Args:
        runs: runs the judgements.
        parts: what the judge is made of.
        output: folder of the results, which has scores of earlier runs.
        names: measures; those that need no judge are left out.
        data: name of the data, whose pages a judge may read.

    Raises:
        PrerequisiteError: the judge cannot be asked: a key, a price or a package is missing.
    """

    def __init__(self, runs: DerivedRuns, parts: RunParts, output: Path, names: Iterable[str], data: str) -> None:
        from rag_harness.engine.panel_judging import judging_of
        from rag_harness.engine.stored import Stored
        from rag_harness.judges.ready import check_judge

        self._runs, self._parts, self._data = runs, parts, data
        self._names = [name for name in names if is_judged(name)]
        self._measures = parts_of(self._names)
        check_judge(parts.settings)
        self._find = Stored(output, uuid4().hex, parts.settings.overwrite).score
        self._judging = judging_of(parts, self._gold_pages, runs.ask_elsewhere)
        self.is_spent = False
        if why := self._judging.made():
            raise CriticalError(f"The judge cannot be asked: {why}")

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {document.doc_id: document.text for document in self._parts.data(self._data).documents}

    def _gold_pages(self, _: str, case: Case) -> list[str]:
        return [self._pages[name] for name in case.context_reference if name in self._pages]

    def judged(self, rows: Mapping[str, RowsByQuery], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return the rows of each configuration with their scores. All are judged at once.

        Raises:
            CriticalError: the judge did not answer: what it did not judge says nothing about a configuration.
        """
        asked = {
            (name, case.query.query_id, "judged"): (row, case)
            for name, each in rows.items()
            for case in cases
            if isinstance(row := each[case.query.query_id], ExperimentResult)
        }
        came = self._runs.collect({key: self._job(row, case) for key, (row, case) in asked.items()})
        found: dict[str, dict[str, Mapping[str, Score]]] = {name: {} for name in rows}
        for (name, query_id, _), (row, case) in asked.items():
            judged = cast("JudgedRow", came[name, query_id, "judged"])
            found[name][query_id] = self._of(row, case, judged.scores)
        return {name: JudgedRows(each, found[name]) for name, each in rows.items()}

    def _job(self, row: ExperimentResult, case: Case) -> Any:
        return lambda: self._judging.row(row, case, self._measures, self._find)

    def _of(self, row: ExperimentResult, case: Case, said: Mapping[str, Score]) -> dict[str, Score]:
        absent = {each.name: Score(None, why, undefined=True) for each in self._measures if (why := each.applies(case))}
        scores = {**said, **absent}
        found = {name: _score(name, scores) for name in self._names}
        for name, score in found.items():
            if score.value is None and not score.undefined and _BUDGET in score.reason:
                self.is_spent = True
            elif score.value is None and not score.undefined:
                raise CriticalError(
                    f"{name} of {row.trial_id} was not judged: {score.reason}. The same command goes on: it asks the "
                    f"judge again, and nobody else."
                )
        return found


class Answering:
    """Asks for answers, and for what a judge says of them.

    Args:
        asking: asks the configurations.
        judging: the judge; None where nothing is judged.
    """

    def __init__(self, asking: Asking, judging: RaceJudging | None) -> None:
        self._asking, self._judging = asking, judging

    def answers(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> Mapping[str, RowsByQuery]:
        """Return what each configuration answers to each case, by its name."""
        rows = self._asking.answers(candidates, cases)
        return rows if self._judging is None or self._asking.is_spent() else self._judging.judged(rows, cases)

    def found(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> Mapping[str, RowsByQuery]:
        """Return what each configuration finds for each case, by its name. Nobody judges that."""
        return self._asking.found(candidates, cases)

    def is_spent(self) -> bool:
        """Return whether something was not asked because the budget is spent."""
        return self._asking.is_spent() or (self._judging is not None and self._judging.is_spent)


def _score(name: str, scores: Mapping[str, Score]) -> Score:
    measure: object = measure_named(name)
    return measure.score(scores) if isinstance(measure, CompositeMeasure) else scores[name]
