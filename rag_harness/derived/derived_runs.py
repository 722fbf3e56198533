"""Runs derived trials: an experiment's own generator on a changed context, or the whole pipeline again.

They are ordinary trials with names like ``e3+gold_context``. The engine runs them with the run's settings, models,
limits and budget, and journals them. They are kept in ``derived/<experiment>+<intervention>.jsonl``, and do not run
again where they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from rag_harness.derived.attribution.interventions import TWICE
from rag_harness.engine.jobs import Engine, JobResult
from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_request import TrialRequest
from rag_harness.engine.trial_rows import Trial
from rag_harness.engine.workplace import AskJudge, Workplace
from rag_harness.errors import RagHarnessError
from rag_harness.files.sources import json_digest
from rag_harness.pipelines.given_searches import GivenSearches
from rag_harness.protocols import Experiment
from rag_harness.results.file import ResultFile, finished_rows
from rag_harness.results.result_paths import result_path
from rag_harness.results.row import ExperimentResult
from rag_harness.results.storable import storable
from rag_harness.settings import Settings
from rag_harness.types import SESSION, Case, Hit
from rag_harness.work.once import Once


class DerivedAsk(Protocol):
    """What is asked of an experiment, and is kept under the name ``derived``."""

    @property
    def experiment(self) -> Experiment:
        """Answers."""
        ...

    @property
    def case(self) -> Case:
        """What is asked."""
        ...

    @property
    def derived(self) -> str:
        """The name of the derived experiment, with a ``+`` in it."""
        ...

    @property
    def asking(self) -> TrialRequest:
        """The ``TrialRequest`` for the workplace."""
        ...

    @property
    def why_not(self) -> str:
        """Why it is not asked; empty where it is."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of what decides the answers."""
        ...

    def is_answered_by(self, row: ExperimentResult) -> bool:
        """Whether a stored row with this fingerprint was asked the same."""
        ...


_Ask = TypeVar("_Ask", bound=DerivedAsk)
_Job: TypeAlias = "Callable[[], Coroutine[Any, Any, JobResult]]"


@dataclass(frozen=True, slots=True, eq=False)
class DerivedTrial:
    """A derived trial.

    Attributes:
        hits: the given ones; None where the pipeline retrieves.
        searches: what is given in place of its searches; None where it makes all of them.
    """

    experiment: Experiment
    name: str
    case: Case
    row: ExperimentResult
    hits: tuple[Hit, ...] | None = None
    searches: GivenSearches | None = None

    @property
    def derived(self) -> str:
        """The name of the derived experiment."""
        return f"{self.experiment.id}{self.name}"

    @property
    def asking(self) -> TrialRequest:
        """The ``TrialRequest`` for the workplace. A failure leaves no row: its reason is in ``causes.jsonl``."""
        return TrialRequest(hits=self.hits, keeps_failures=False, searches=self.searches)

    @property
    def why_not(self) -> str:
        """Why it is not asked; empty where it is."""
        if SESSION not in self.row.inputs:
            return ""
        return (
            "the service keeps the conversation itself, so this turn cannot be asked again: the service would hear it "
            "after all that was said since"
        )

    @property
    def fingerprint(self) -> str:
        """Digest of what decides the answers, apart from the given hits: these are in the row."""
        return json_digest([self.row.fingerprint, self.name])

    def is_answered_by(self, row: ExperimentResult) -> bool:
        """Whether a stored row was asked the same, with the same said before it, and from the same hits."""
        if row.inputs != storable(self.case.query.inputs):
            return False
        if self.searches is not None and not _fits(row, self.searches):
            return False
        if self.hits is None:
            return bool(row.query == storable(self.case.query.text))
        given = [(chunk.chunk_id, chunk.text) for chunk in row.retrieved_chunks]
        return given == [(hit.chunk.chunk_id, hit.chunk.text) for hit in self.hits]


def _fits(row: ExperimentResult, searches: GivenSearches) -> bool:
    """Whether each search of a row was made, or was given its hits, as ``searches`` says."""
    for stage in row.stages:
        number = stage.detail.get("search")
        given = searches.of(number) if isinstance(number, int) else None
        if bool(stage.detail.get("given")) != (given is not None):
            return False
        if given is not None and [hit.chunk_id for hit in stage.hits] != [hit.chunk.chunk_id for hit in given]:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a derived trial. ``new`` is its line in the journal, empty for a failure."""

    outcome: TrialOutcome
    new: tuple[bytes, ...] = ()


class DerivedRuns:
    """Runs derived trials in a process that writes their files.

    Args:
        output: folder of the result files.
        settings: settings of the run.
        engine: made on first use, for most of the trials may be in the files.
        workplace: where they are answered; made on first use too.
    """

    def __init__(self, output: Path, settings: Settings, engine: Once[Engine], workplace: Once[Workplace]) -> None:
        self._output, self._settings, self._engine, self._workplace = output, settings, engine, workplace
        self._files: dict[str, ResultFile] = {}
        self._stored: dict[tuple[str, str], Mapping[str, ExperimentResult]] = {}
        self._broken = ""

    def run(self, asks: Sequence[_Ask]) -> dict[_Ask, ExperimentResult | str]:
        """Return the row of each trial, or why there is none. All trials that have to run do so at once."""
        refused: dict[_Ask, ExperimentResult | str] = {ask: ask.why_not for ask in asks if ask.why_not}
        asks = [ask for ask in asks if ask not in refused]
        stored = self._found(asks)
        if len(stored) < len(asks) and self._workplace.made is None:
            # A cluster hands over the rows that an earlier run has left on its nodes.
            self._workplace.get()
            self._stored.clear()
            stored = self._found(asks)
        new = [ask for ask in asks if ask not in stored]
        for ask in new:
            self._submit(ask)
        return {**refused, **stored, **{ask: self._result(ask) for ask in new}}

    def _found(self, asks: Sequence[_Ask]) -> dict[_Ask, ExperimentResult | str]:
        return {ask: found for ask in asks if (found := self._find(ask)) is not None}

    @property
    def broken(self) -> str:
        """Why no more trials are asked; empty where they are."""
        return self._broken

    def collect(self, jobs: Mapping[Hashable, _Job]) -> dict[Hashable, JobResult]:
        """Return what comes of other jobs, by key, such as judgements. All run at once, and are journalled."""
        if not jobs:
            return {}
        engine = self._engine.get()
        for key, job in jobs.items():
            engine.submit(key, job)
        found = {key: engine.result(key) for key in jobs}
        for key in jobs:
            engine.forget(key)
        return found

    @property
    def ask_elsewhere(self) -> AskJudge | None:
        """Asks the judge of another process; None where the judge is in this one."""
        return self._workplace.get().ask

    def close(self) -> None:
        """Force the files to the disk."""
        for file in self._files.values():
            file.close()

    def _find(self, ask: DerivedAsk) -> ExperimentResult | None:
        key = ask.derived, ask.fingerprint
        if key not in self._stored:
            file = result_path(self._output, ask.derived)
            self._stored[key] = {} if self._settings.overwrite else finished_rows(file, ask.fingerprint)
        found = self._stored[key].get(ask.case.query.query_id)
        return found if found is not None and ask.is_answered_by(found) else None

    def _submit(self, ask: DerivedAsk) -> None:
        trial, workplace = Trial(ask.derived, ask.case), self._workplace.get()

        async def job() -> Came:
            if self._broken:
                return Came(TrialOutcome(None, not_run=self._broken))
            outcome = await workplace.answer(trial, ask.experiment, ask.fingerprint, ask.asking)
            row = outcome.row
            if outcome.critical and row is not None:
                self._broken = row.error_text  # no later trial can succeed, so waiting ones are not asked for
            return Came(outcome, (row.line().encode(),) if row is not None and ask.asking.keeps(outcome) else ())

        self._engine.get().submit(trial.id, job)

    def _result(self, ask: DerivedAsk) -> ExperimentResult | str:
        trial = Trial(ask.derived, ask.case)
        try:
            came = cast("Came", self._engine.get().result(trial.id))
        except (CancelledError, RagHarnessError) as error:  # the run was stopped, or the journal cannot be written
            self._broken = str(error) or "the run was stopped"
            return self._broken
        with suppress(KeyError):
            self._engine.get().forget(trial.id)
        return self._kept(came.outcome)

    def _kept(self, outcome: TrialOutcome) -> ExperimentResult | str:
        row = outcome.row
        if row is None:
            return f"not run: {outcome.not_run}"
        if not row.ok:
            return row.error_text
        file = result_path(self._output, row.experiment)
        if row.experiment not in self._files:
            self._files[row.experiment] = ResultFile(file, self._settings.overwrite)
        self._files[row.experiment].append(row)
        return row


def asks_of(
    experiment: Experiment, case: Case, row: ExperimentResult, hits: Mapping[str, Sequence[Hit]]
) -> list[DerivedTrial]:
    """Return the first trials for a failure: the same again, and each changed context."""
    return list(_asks(experiment, case, row, hits))


def _asks(
    experiment: Experiment, case: Case, row: ExperimentResult, hits: Mapping[str, Sequence[Hit]]
) -> Iterator[DerivedTrial]:
    yield DerivedTrial(experiment, TWICE[0], case, row)
    if experiment.answer_from is not None:
        yield from (DerivedTrial(experiment, name, case, row, tuple(given)) for name, given in hits.items())
