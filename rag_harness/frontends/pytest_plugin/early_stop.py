"""Early stopping of experiments whose gates are all settled."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_harness.core.errors import CriticalError, PrerequisiteError
from rag_harness.core.escaping import terminal_line
from rag_harness.core.log import log
from rag_harness.frontends.pytest_plugin.items import trial_id_of, trial_of
from rag_harness.frontends.pytest_plugin.terminal import usage_error
from rag_harness.frontends.pytest_plugin.trial_report import carried_by

if TYPE_CHECKING:
    from rag_harness.core.types import TrialId
    from rag_harness.evaluation.measures import Measure, Score
    from rag_harness.frontends.pytest_plugin.gates import ConfiguredGates
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.stop_plan import Watch
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.gates import Gate, GateRules
    from rag_harness.runs.trial import Trial


class EarlyStopping:
    """Stops experiments early, in a run of one process. Without the option it does nothing.

    Args:
        session: state of the run.
        recorder: is told which experiments are settled.
        trials: run ahead less far, and can be abandoned.
        configured: the gates of the run.
    """

    def __init__(
        self, session: RagSession, recorder: Recorder, trials: TrialRunner, configured: ConfiguredGates
    ) -> None:
        self._session, self._recorder, self._trials, self._configured = session, recorder, trials, configured
        self._watches: dict[str, Watch] = {}
        self._refused: dict[str, str] = {}
        self._looked_at: set[TrialId] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Put cases in random order, after all other plugins have selected and sorted tests."""
        result = yield
        trials = {item: trial_id for item in items if trial_of(item) and (trial_id := trial_id_of(item))}
        try:
            if trials and self._session.settings.stop_early:
                items[:] = self._planned(items, trials)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        return result

    def _planned(self, items: Sequence[pytest.Item], trials: Mapping[pytest.Item, TrialId]) -> list[pytest.Item]:
        from rag_harness.frontends.pytest_plugin.stop_plan import check_gates, in_order

        # Gates may be about experiments that are named only by these tests.
        self._session.own_experiments |= {trial.experiment for trial in trials.values()}
        check_gates(self._configured.all, self._session.settings.save)
        ranks: dict[TrialId, int] = {}
        for experiment in dict.fromkeys(trial.experiment for trial in trials.values()):
            ranks |= self._watch(experiment, {trial for trial in trials.values() if trial.experiment == experiment})
        self._trials.ahead.stops_early = bool(self._watches)
        return in_order(items, {item: (trial, ranks[trial]) for item, trial in trials.items() if trial in ranks})

    def _watch(self, experiment: str, selected: set[TrialId]) -> dict[TrialId, int]:
        """Watch the gates of an experiment and return the places of its trials; empty if it must be asked in full."""
        from rag_harness.core.types import TrialId
        from rag_harness.frontends.pytest_plugin.stop_plan import (
            Watch,
            Watched,
            kept_together,
            refusal,
            why_drafts_count,
        )
        from rag_harness.runs.gates.early_stopping import random_order

        settings, cases = self._session.settings, self._session.cases.all_of(experiment)
        why = refusal(experiment, self._configured.all, cases, len(selected))
        why = why or why_drafts_count(experiment, self._configured.all, cases, settings.gate_unreviewed)
        if why:
            self._refused[experiment] = why
            return {}
        order = random_order(kept_together(cases), settings.order_seed)
        own = [gate for gate in self._configured.all if gate.suite == experiment]
        self._watches[experiment] = Watch(order, [Watched(gate, cases, settings.max_unmeasured) for gate in own])
        return {TrialId(experiment, query_id): place for place, query_id in enumerate(order)}

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say which experiments may stop early, and why the others may not."""
        seed = self._session.settings.order_seed if self._watches else 0
        watched = [
            f"rag: {name} stops early: cases in random order (seed {seed}) until its gates are settled; they are then "
            f"about these cases and no others, as with --rag-population=finite"
            for name in self._watches
        ]
        in_full = [f"rag: {name} is asked in full: {why}" for name, why in self._refused.items()]
        return [terminal_line(each) for each in (*watched, *in_full)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test that need not be asked, before its fixtures are made."""
        trial_id = trial_id_of(item) if self._recorder.settled else None
        if trial_id and trial_id.experiment in self._recorder.settled and trial_id not in self._looked_at:
            pytest.skip("not run: settled")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Look at each result when its scores are there: at the teardown of its first test."""
        report = yield
        carried, trial = carried_by(report), trial_of(item) if self._watches else None
        row = carried.result
        if call.when == "teardown" and row is not None and trial is not None and not item.session.shouldstop:
            # If the run was stopped, or nothing can be kept any more, no result is looked at.
            with suppress(CriticalError, CancelledError):
                self._look(trial, row)
        elif trial is not None and carried.ended is not None:
            _, _, why, _ = carried.ended
            self._pass_over(trial, why)
        return report

    def _pass_over(self, trial: Trial, why: str) -> None:
        """Take a turn that its user never came to: the cases behind it need not wait for it."""
        from rag_harness.evaluation.measures import Score

        watch = self._watches.get(trial.experiment)
        if watch is not None and trial.id not in self._looked_at:
            absent = Score(None, why, undefined=True)
            self._take(watch, trial, {measure.name: absent for measure in watch.measures})

    def _look(self, trial: Trial, row: ExperimentResult) -> None:
        watch = self._watches.get(trial.experiment)
        if watch is None or trial.id in self._looked_at:
            return
        scores = {measure.name: self._score(measure, trial, row) for measure in watch.measures}
        self._take(watch, trial, scores)

    def _take(self, watch: Watch, trial: Trial, scores: Mapping[str, Score]) -> None:
        self._looked_at.add(trial.id)
        if trial.experiment not in self._recorder.settled and watch.take(trial.case.query.query_id, scores):
            log.info("%s: every gate is settled after %s", trial.experiment, trial.case.query.query_id)
            self._recorder.settled.add(trial.experiment)
            self._trials.abandon(trial.experiment)

    def _score(self, measure: Measure, trial: Trial, row: ExperimentResult) -> Score:
        """Return the score that the tables will give a row."""
        from rag_harness.evaluation.measures import RowMeasure, Score

        if why := measure.applies(trial.case):
            return Score(None, why, undefined=True)
        if not row.ok:
            return Score(measure.worst, "no answer", undefined=measure.worst is None)
        try:
            return self._trials.judgements.of(trial, row)[measure.name]
        except Exception as error:
            if not isinstance(measure, RowMeasure):
                raise
            return Score(None, f"the measure raised {type(error).__name__}")

    def rules_for(self, gate: Gate, rules: GateRules, some_left: bool) -> GateRules:
        """Return how a gate is judged. If it could be settled early, it is about these cases only, settled or not."""
        watch = self._watches.get(gate.suite)
        if watch is None:
            return rules
        return replace(rules, population="finite", settled=watch.verdicts if some_left else {})
