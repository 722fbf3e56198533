"""Preparation of experiments, index and vectors first, and the figures that can be printed before it is over."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread, current_thread
from typing import TYPE_CHECKING

from rag_harness.core.concurrency import harness_at_work
from rag_harness.core.errors import RecordingMissError
from rag_harness.core.progress import give_back, listening
from rag_harness.core.registry import is_own_code
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.terminal import write_lines

if TYPE_CHECKING:
    from rag_harness.core.protocols import Experiment
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import RunResources
    from rag_harness.records.row import ExperimentResult

_WIND_UP = 5.0
"""Seconds that a preparation gets to end, when the run is over before it."""


@dataclass
class _Beside:
    """A preparation in a thread of its own."""

    experiment: Experiment
    ended: Future[None] = field(default_factory=Future)
    thread: Thread | None = None


class Preparation:
    """Prepares each experiment once, before its first trial is asked.

    Tests that need nothing of it go on meanwhile: retrieval by words, or a service. While another experiment is asked
    that has an index, or whose code is a user's own, nothing is prepared beside it: both might build the same part.

    Args:
        session: state of the run.
        equipment: of this process.
    """

    def __init__(self, session: RagSession, equipment: RunResources) -> None:
        self._session, self._equipment = session, equipment
        self._prepared: set[str] = set()
        self._beside: _Beside | None = None
        self._is_over = False

    def make_sure(self, experiment: Experiment) -> None:
        """Prepare an experiment whose trial is about to be asked, or wait until it is prepared.

        Raises:
            PrerequisiteError: the index or a model cannot be made.
        """
        beside = self._beside
        if beside is not None and (beside.experiment.id == experiment.id or not _needs_nothing(experiment)):
            self._beside = None
            self._take_over(beside, experiment)
        if experiment.prepare is not None and experiment.id not in self._prepared:
            self._prepare(experiment)
            self._prepared.add(experiment.id)

    def _take_over(self, beside: _Beside, experiment: Experiment) -> None:
        try:
            beside.ended.result()
            self._prepared.add(beside.experiment.id)
        except Exception:
            if beside.experiment.id == experiment.id:
                raise  # its own first test reports the error

    def is_ready(self, experiment: Experiment, current: Experiment) -> bool:
        """Return whether trials of an experiment can be asked ahead of their tests, beside those of ``current``.

        If not, its preparation is under way.
        """
        beside = self._beside
        if beside is not None and beside.ended.done() and beside.ended.exception() is None:
            self._prepared.add(beside.experiment.id)
            self._beside = None
        if experiment.prepare is None or experiment.id in self._prepared:
            return True
        if self._beside is None and not (self._prepared or self._equipment.is_inline) and _needs_nothing(current):
            self._begin(experiment)
        return self._beside is None

    @property
    def is_under_way(self) -> bool:
        """Whether something is prepared beside the tests."""
        return self._beside is not None and not self._beside.ended.done()

    def close(self) -> None:
        """End what nobody waits for any more. Vectors that are there stay."""
        self._is_over = True
        if self._beside is not None and self._beside.thread is not None:
            self._beside.thread.join(_WIND_UP)

    def _begin(self, experiment: Experiment) -> None:
        self._beside = beside = _Beside(experiment)
        # A daemon: the end of the run never waits for a service that hangs.
        beside.thread = Thread(target=self._run, args=(beside,), name="rag-prepare", daemon=True)
        beside.thread.start()

    def _run(self, beside: _Beside) -> None:
        try:
            with listening(self._stop_at_the_end):
                self._prepare(beside.experiment)
            give_back()  # other threads go on, and could not use what this one has freed
        except BaseException as error:
            beside.ended.set_exception(error)
        else:
            beside.ended.set_result(None)

    def _stop_at_the_end(self, what: str, done: int, total: int, unit: str) -> None:  # noqa: ARG002 - a listener
        if self._is_over and self._beside is not None and current_thread() is self._beside.thread:
            raise CancelledError("the run is over")

    def _prepare(self, experiment: Experiment) -> None:
        assert experiment.prepare is not None
        self._session.parts.loop = lambda calls: self._equipment.engine.get().run(calls)
        # Trials that retrieve report a missing recording themselves. Trials that do not retrieve go on.
        with suppress(RecordingMissError), harness_at_work():
            experiment.prepare(self._session.experiments.queries(experiment))


def _needs_nothing(experiment: Experiment) -> bool:
    """Return whether an experiment builds none of the parts that a preparation of another one builds."""
    return experiment.prepare is None and not is_own_code(experiment.code)


class FiguresAhead:
    """Prints the figures of the golden suite as soon as they are there, where vectors are still made for other tests.

    Args:
        session: state of the run.
        preparation: of this process.
    """

    def __init__(self, session: RagSession, preparation: Preparation) -> None:
        self._session, self._preparation = session, preparation
        self._left: set[str] = set()
        self._scores: list[tuple[float, ...]] = []

    def collection_done(self, selected: Collected) -> None:
        """Note which entries are looked up here, beside trials that may need vectors."""
        if selected.items and selected.trials:  # workers of xdist prepare, and collect
            self._left = set(selected.golden)

    def pytest_rag_result(self, result: ExperimentResult) -> None:
        """Take a row of the golden suite; print the figures after the last one."""
        if result.experiment != GOLDEN or result.query_id not in self._left:
            return
        self._left.discard(result.query_id)
        self._scores.append(tuple(self._score(name, result) for name in self._names))
        if not self._left and self._preparation.is_under_way:
            self._print()

    @property
    def _names(self) -> tuple[str, ...]:
        return (f"recall@{self._session.settings.k}", "mrr@10")

    def _score(self, name: str, row: ExperimentResult) -> float:
        from rag_harness.evaluation.measures import RowMeasure, measure_named

        measure = measure_named(name)
        assert isinstance(measure, RowMeasure)
        return (measure.score(self._session.golden.case(row.query_id), row).value or 0.0) if row.ok else 0.0

    def _print(self) -> None:
        terminal = self._session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or self._session.config.option.verbose < 0:
            return
        means = (sum(values) / len(values) for values in zip(*self._scores, strict=True))
        figures = ", ".join(f"{name} {mean:.3f}" for name, mean in zip(self._names, means, strict=True))
        terminal.ensure_newline()
        found = f"golden by {self._session.settings.retriever}: {figures} on {len(self._scores):,} questions"
        write_lines(terminal, [f"rag: {found}; vectors for the other tests are being made"])
