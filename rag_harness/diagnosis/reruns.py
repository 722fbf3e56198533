"""Reruns of trials with one thing changed, and which experiments of a run support them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast
from uuid import uuid4

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import RagHarnessError
from rag_harness.core.files import json_digest
from rag_harness.core.log import log
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import SESSION, Case, Hit
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.interventions import TWICE
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.trace import GivenSearches
from rag_harness.records.files import ResultFile, finished_rows
from rag_harness.records.row import ExperimentResult, storable
from rag_harness.runs.engine import AskJudge, Engine, JobResult, Workplace
from rag_harness.runs.trial import Trial, TrialOutcome, TrialRequest

if TYPE_CHECKING:
    from rag_harness.data.datasets import Data
    from rag_harness.pipelines.parts import RunParts


# Runs derived trials: an experiment's own generator on a changed context, or the whole pipeline again.
#
# They are ordinary trials with names like ``e3+gold_context``. The engine runs them with the run's settings, models,
# limits and budget, and journals them. They are kept in ``derived/<experiment>+<intervention>.jsonl``, and do not run
# again where they are there.


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
class DerivedResult:
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

    def __init__(self, output: Path, settings: Settings, engine: Lazy[Engine], workplace: Lazy[Workplace]) -> None:
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
        """Return the results of other jobs, such as judgements, by key. All run at once, and are journalled."""
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

        async def job() -> DerivedResult:
            if self._broken:
                return DerivedResult(TrialOutcome(None, not_run=self._broken))
            outcome = await workplace.answer(trial, ask.experiment, ask.fingerprint, ask.asking)
            row = outcome.row
            if outcome.critical and row is not None:
                self._broken = row.error_text  # no later trial can succeed, so waiting ones are not asked for
            return DerivedResult(
                outcome, (row.line().encode(),) if row is not None and ask.asking.keeps(outcome) else ()
            )

        self._engine.get().submit(trial.id, job)

    def _result(self, ask: DerivedAsk) -> ExperimentResult | str:
        trial = Trial(ask.derived, ask.case)
        try:
            came = cast("DerivedResult", self._engine.get().result(trial.id))
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


# Finds for each experiment of a run whether it can answer from given hits, and what its index holds.

BLACK_BOX = "the pipeline does not say how to answer from other sources (Experiment.answer_from)"
NOT_KNOWN = (
    "it is not known whether it would still answer as in this run, because it is asked in each run. A fingerprint "
    "that it states would say so; --rag-attribute explains within a run"
)
CHANGED = "the experiment is not what it was when its rows were made; run pytest again"


@dataclass(frozen=True, slots=True)
class KnownExperiment:
    """One experiment, as far as it is known.

    Attributes:
        experiment: None where it cannot be run again; ``why_not`` says why.
        view: the chunks and pages that it could have found; None where neither are known.
    """

    experiment: Experiment | None = None
    view: CorpusView | None = None
    why_not: str = ""

    @property
    def limits(self) -> str:
        """Why contexts cannot be altered; empty where they can."""
        if self.experiment is None:
            return self.why_not
        return "" if self.experiment.answer_from is not None else BLACK_BOX


class RerunSupport:
    """Finds the experiments of a run.

    Args:
        experiment: returns an experiment by its name, or None where it is not registered.
        fingerprint: returns the present fingerprint of an experiment.
        data: returns the named data.
        is_live: whether the run asked what was there, and kept nothing.
    """

    def __init__(
        self,
        experiment: Callable[[str], Experiment | None],
        fingerprint: Callable[[Experiment], str],
        data: Callable[[str], Data],
        *,
        is_live: bool = False,
    ) -> None:
        self._experiment, self._fingerprint, self._data, self._is_live = experiment, fingerprint, data, is_live

    def subject(self, name: str, fingerprints: Collection[str]) -> KnownExperiment:
        """Return what is known of an experiment whose rows have these fingerprints."""
        try:
            found = self._experiment(name)
            if found is None:
                return KnownExperiment(why_not=f"{name} is not a registered experiment, so nothing of it is run again")
            # Where an experiment has changed, its answers and its index no longer belong to the rows.
            if self._fingerprint(found) not in fingerprints:
                is_known = found.is_reusable and not self._is_live
                return KnownExperiment(why_not=CHANGED if is_known else NOT_KNOWN)
        except (OSError, RagHarnessError) as error:
            return KnownExperiment(why_not=f"{name} cannot be built: {error}")
        return KnownExperiment(found, self._view(found))

    def _view(self, experiment: Experiment) -> CorpusView | None:
        try:
            documents = self._data(experiment.data).documents
            return CorpusView(experiment.chunks() if experiment.chunks is not None else None, documents)
        except Exception as error:  # a user's index may raise anything, and the run was paid for
            log.warning("What %s could have found is not known", experiment.id, exc_info=error)
            return None


def no_reruns() -> RerunSupport:
    """Return support without experiments, for findings from rows and gold alone."""

    def refuse(_: str) -> Experiment | None:
        raise RagHarnessError("nothing was asked for but rows and gold")

    def fingerprint(_: Experiment) -> str:
        return ""

    def data(_: str) -> Data:
        raise RagHarnessError("no data")

    return RerunSupport(refuse, fingerprint, data)


def settings_of(said: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run from its ``run.json``. ``given`` replaces some of them; keys are the present ones.

    Raises:
        SettingsError: a value is no longer valid.
    """
    from rag_harness.core.settings.loading import load_settings

    hidden = [each for each in fields(Settings) if each.metadata.get("secret") or each.metadata.get("derived")]
    left_out = {each.name for each in hidden} | {"rootdir", "dry_run", "gate", "save", "compare"}
    known = {each.name for each in fields(Settings)} - left_out
    return load_settings(
        {**{name: value for name, value in said.items() if name in known}, **given}, rootdir=said.get("rootdir", ".")
    )


def bench_of(parts: RunParts, as_run: Settings) -> RerunSupport:
    """Return support of the registered experiments. ``as_run`` are the settings of the rows."""
    from rag_harness.pipelines.experiments import experiment, is_known
    from rag_harness.runs.fingerprint import fingerprint_about

    def fingerprint(found: Experiment) -> str:
        return fingerprint_about(found, as_run, parts.data(found.data))

    def build(name: str) -> Experiment | None:
        return experiment(name, parts) if is_known(name, parts.settings) else None

    return RerunSupport(build, fingerprint, parts.data, is_live=as_run.mode == "live")


@contextmanager
def running(output: Path, parts: RunParts) -> Iterator[DerivedRuns]:
    """Run derived trials in this process. At the end, after errors too, their results are in the files."""
    from rag_harness.records.files import PromptFiles
    from rag_harness.runs.engine import LocalWorkplace as Here
    from rag_harness.runs.journal import adopt_journals

    adopt_journals(output)
    here: Workplace = Here(parts.settings, PromptFiles(output).keep)
    process = _Process(output, parts)
    runs = DerivedRuns(output, parts.settings, process.engine, Lazy(lambda: here))
    try:
        yield runs
    finally:
        runs.close()
        process.close()
        parts.flush()
        adopt_journals(output)


class _Process:
    """A loop and its journal, made when the first trial has to run."""

    def __init__(self, output: Path, parts: RunParts) -> None:
        self._output, self._parts = output, parts
        self._close: list[Callable[[], None]] = []
        self.engine: Lazy[Engine] = Lazy(self._make)

    def _make(self) -> Engine:
        from rag_harness.runs.engine import BackgroundLoop
        from rag_harness.runs.journal import JOURNALS, Journal

        journal = Journal(self._output / JOURNALS, f"{uuid4().hex}-explain")

        async def keep(came: JobResult) -> None:
            if new := cast("DerivedResult", came).new:
                await journal.keep(b"".join(new))

        loop: BackgroundLoop[JobResult] = BackgroundLoop(self._parts.settings.concurrency, keep)
        self._close = [lambda: loop.close(self._parts.endpoints.aclose), journal.close]
        return loop

    def close(self) -> None:
        """Stop the loop. Then its journal can be taken over."""
        for close in self._close:
            close()
