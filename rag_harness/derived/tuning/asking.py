"""Asks configurations: rows of what they find, and of what they answer. What was asked once is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_harness.derived.derived_runs import DerivedRuns
from rag_harness.derived.tuning.contenders import AFTER_RANKING, Contender
from rag_harness.derived.tuning.ranking import ranking_of, with_top_k
from rag_harness.engine.trial_request import TrialRequest
from rag_harness.errors import CriticalError
from rag_harness.measures import Score
from rag_harness.pipelines import experiment_of
from rag_harness.protocols import Experiment
from rag_harness.results.row import ExperimentResult
from rag_harness.results.storable import storable
from rag_harness.settings.configuration_spec import ConfigurationSpec
from rag_harness.types import Case

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

_NOT_RUN = "not run: "
RowsByQuery = Mapping[str, "ExperimentResult | str"]
"""The row of each question, or why there is none."""


class JudgedRows(dict[str, "ExperimentResult | str"]):
    """Rows with what a judge has said of them: ``scores`` has those of a question, by measure."""

    def __init__(self, rows: RowsByQuery, scores: Mapping[str, Mapping[str, Score]]) -> None:
        super().__init__(rows)
        self.scores: Mapping[str, Mapping[str, Score]] = scores


@dataclass(frozen=True, slots=True, eq=False)
class TunedTrial:
    """One configuration, or its ranking, on one question. ``experiment.id`` is the name of its rows."""

    experiment: Experiment
    case: Case
    fingerprint: str
    why_not: str = ""

    @property
    def derived(self) -> str:
        """The name of the derived experiment."""
        return self.experiment.id

    @property
    def asking(self) -> TrialRequest:
        """The request. A failure leaves no row, so that the next run asks again."""
        return TrialRequest(keeps_failures=False)

    def is_answered_by(self, row: ExperimentResult) -> bool:
        """Whether a stored row was asked the same."""
        return bool(row.query == storable(self.case.query.text) and row.inputs == storable(self.case.query.inputs))


class Asking:
    """Asks the configurations of a race.

    Args:
        runs: runs the trials.
        parts: what configurations are built of.
        fingerprint: of an experiment.
        candidates: all of the race; of one ranking the deepest ``top_k`` is asked for.
    """

    def __init__(
        self,
        runs: DerivedRuns,
        parts: RunParts,
        fingerprint: Callable[[Experiment], str],
        candidates: Sequence[Contender],
    ) -> None:
        self._runs, self._parts, self._fingerprint = runs, parts, fingerprint
        self._built: dict[str, Experiment] = {}
        self._fingerprints: dict[str, str] = {}
        self._prepared: set[str] = set()
        self._spent = False
        self._rankings: dict[str, dict[str, ExperimentResult | str]] = {}
        self._deepest: dict[str, Contender] = {}
        for each in candidates:
            known = self._deepest.setdefault(each.ranking, each)
            if each.top_k > known.top_k:
                self._deepest[each.ranking] = each

    def build(self, candidate: Contender) -> Experiment:
        """Return the experiment of a configuration.

        Raises:
            PrerequisiteError: it cannot be built.
        """
        if candidate.name not in self._built:
            self._built[candidate.name] = experiment_of(candidate.spec, self._parts)
        return self._built[candidate.name]

    def finds(self, candidate: Contender) -> bool:
        """Return whether what a configuration finds can be asked for without an answer."""
        return self.build(candidate).retriever is not None

    def found(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return what each configuration finds for each case, by its name. Each ranking is made once."""
        candidates = list(candidates)
        for name in dict.fromkeys(each.ranking for each in candidates):
            known = self._rankings.setdefault(name, {})
            new = [case for case in cases if case.query.query_id not in known]
            if new:
                known |= self._asked(self._ranking(name), new)
        return {each.name: self._cut(each, cases) for each in candidates}

    def answers(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return what each configuration answers to each case, by its name. All are asked at once."""
        ready = {each.name: self._ready(self.build(each), cases) for each in candidates}
        asks = {name: [self._trial(experiment, case) for case in cases] for name, experiment in ready.items()}
        came = self._came([ask for each in asks.values() for ask in each])
        return {name: {ask.case.query.query_id: came[ask] for ask in each} for name, each in asks.items()}

    def is_spent(self) -> bool:
        """Return whether a question was not asked because the budget is spent."""
        return self._spent

    def _came(self, asks: Sequence[TunedTrial]) -> dict[TunedTrial, ExperimentResult | str]:
        came = self._runs.run(asks)
        unasked = {row for row in came.values() if isinstance(row, str) and row.startswith(_NOT_RUN)}
        self._spent |= any(row.startswith(f"{_NOT_RUN}budget") for row in unasked)
        why = self._runs.broken or next(iter(unasked), "")
        if why and not self._spent:
            # What was not asked would count as wrong answers.
            raise CriticalError(f"The race has stopped: {why.removeprefix(_NOT_RUN)}")
        return came

    def _cut(self, candidate: Contender, cases: Iterable[Case]) -> RowsByQuery:
        rows = self._rankings[candidate.ranking]
        asked = {case.query.query_id: rows[case.query.query_id] for case in cases}
        return {name: row if isinstance(row, str) else with_top_k(row, candidate) for name, row in asked.items()}

    def _ranking(self, name: str) -> Experiment:
        if name not in self._built:
            deepest = self._deepest[name]
            kept = {key: value for key, value in deepest.values.items() if key == "top_k" or key not in AFTER_RANKING}
            spec = ConfigurationSpec(name, tuple(sorted(kept.items())), deepest.spec.experiment, deepest.spec.where)
            self._built[name] = ranking_of(experiment_of(spec, self._parts), name, deepest.top_k)
        return self._built[name]

    def _asked(self, experiment: Experiment, cases: Sequence[Case]) -> dict[str, ExperimentResult | str]:
        self._ready(experiment, cases)
        asks = [self._trial(experiment, case) for case in cases]
        came = self._came(asks)
        return {ask.case.query.query_id: came[ask] for ask in asks}

    def _trial(self, experiment: Experiment, case: Case) -> TunedTrial:
        if experiment.id not in self._fingerprints:
            self._fingerprints[experiment.id] = self._fingerprint(experiment)
        return TunedTrial(experiment, case, self._fingerprints[experiment.id])

    def _ready(self, experiment: Experiment, cases: Sequence[Case]) -> Experiment:
        """Prepare an experiment: its index and the vectors of its questions."""
        if experiment.prepare is not None:
            new = [case.query for case in cases if f"{experiment.id} {case.query.query_id}" not in self._prepared]
            if new:
                experiment.prepare(new)
                self._prepared |= {f"{experiment.id} {query.query_id}" for query in new}
        return experiment
