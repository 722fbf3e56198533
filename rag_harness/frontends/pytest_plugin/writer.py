"""The objects of the process that writes, gates and prints: which ones there are, and what each is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_harness.frontends.pytest_plugin.affected import Affected
from rag_harness.frontends.pytest_plugin.collection import Collected, CollectedTrials
from rag_harness.frontends.pytest_plugin.early_stop import EarlyStopping
from rag_harness.frontends.pytest_plugin.end_of_run import InnerEnd, OuterEnd, RunEnd
from rag_harness.frontends.pytest_plugin.gate_reports import GateKeeper
from rag_harness.frontends.pytest_plugin.gates import ConfiguredGates, RunGates
from rag_harness.frontends.pytest_plugin.preparation import FiguresAhead
from rag_harness.frontends.pytest_plugin.progress import Progress, TrialLog
from rag_harness.frontends.pytest_plugin.readiness import Readiness, RecordingReport
from rag_harness.frontends.pytest_plugin.recorder import ColumnWriter, Recorder, TableMeasures
from rag_harness.frontends.pytest_plugin.run_record import RunFindings, RunMarker, RunRecord
from rag_harness.frontends.pytest_plugin.sections import Slices
from rag_harness.frontends.pytest_plugin.session import RagSession
from rag_harness.frontends.pytest_plugin.trials import TrialRunner


@dataclass(frozen=True)
class Writer:
    """Makes each object once, when another one or pytest first needs it.

    Attributes:
        session: state of the run.
        trials: of this process.
        affected: knows what --rag-affected-by has left.
    """

    session: RagSession
    trials: TrialRunner
    affected: Affected

    def registered(self) -> Sequence[object]:
        """Return the objects that pytest calls: those of ``activation.PLUGIN_OBJECTS`` that belong here."""
        end = self.end
        mine = (self.recorder, self.gates, self.early, self.progress, self.trial_log, self.recording, self.marker)
        return (
            *mine,
            self.ahead,
            self.collection,
            end.golden,
            end.worker_cost,
            InnerEnd(end),
            OuterEnd(end, self.progress),
        )

    @property
    def listeners(self) -> Sequence[Callable[[Collected], None]]:
        """What is called once a run with what was collected, before the first test runs, from left to right.

        The recorder comes first: it locks the folder, and takes over what an earlier run left before a trial is looked
        up. The mark of the run follows. The gates come third: they are read before the costs of the run are printed.
        """
        end = self.end
        return (
            self.recorder.collection_done,
            self.marker.collection_done,
            self.gates.collection_done,
            Readiness(self.session, self.trials).collection_done,
            Slices(self.session.lazy_settings, self.session.cases, self.measures).collection_done,
            *(end.shown.collection_done, end.otlp.collection_done, end.tuning.collection_done),
            *(self.progress.collection_done, self.trial_log.collection_done, self.recording.collection_done),
            *(self.columns.collection_done, self.ahead.collection_done),
        )

    @cached_property
    def recorder(self) -> Recorder:
        """Writes rows and scores as they come."""
        return Recorder(self.session)

    @cached_property
    def measures(self) -> TableMeasures:
        """Knows the measures of the run's tables."""
        return TableMeasures(self.session.lazy_settings, self.session.cases, self.session.wanted)

    @cached_property
    def record(self) -> RunRecord:
        """Writes what is to be known of the run beside its rows."""
        return RunRecord(self.session, self.recorder, self.measures)

    @cached_property
    def findings(self) -> RunFindings:
        """Reads the files of the run when it is over."""
        return RunFindings(self.session, self.recorder, self.record, self.measures)

    @cached_property
    def columns(self) -> ColumnWriter:
        """Keeps the values of large experiments as they come."""
        columns = ColumnWriter(self.session.cases, self.record, self.measures)
        self.recorder.written, self.recorder.scored = columns.take, columns.take_score
        self.record.before_reading.append(columns.seal)
        return columns

    @cached_property
    def configured(self) -> ConfiguredGates:
        """Reads the gates of the run."""
        return ConfiguredGates(self.session)

    @cached_property
    def early(self) -> EarlyStopping:
        """Stops experiments whose gates are settled."""
        return EarlyStopping(self.session, self.recorder, self.trials, self.configured)

    @cached_property
    def gates(self) -> GateKeeper:
        """Judges the gates, and reports them."""
        rules_for, is_all_affected = self.early.rules_for, self.affected.is_all_of
        run = RunGates(self.session, self.configured, self.recorder, self.findings, rules_for, is_all_affected)
        return GateKeeper(self.session, self.recorder, self.record, run)

    @cached_property
    def ahead(self) -> FiguresAhead:
        """Prints figures that need no vectors while these are made."""
        return FiguresAhead(self.session, self.trials.preparation)

    @cached_property
    def progress(self) -> Progress:
        """Shows how the run goes on."""
        return Progress(self.session.config, self.trials.equipment.in_flight, self.recorder.is_resumed)

    @cached_property
    def trial_log(self) -> TrialLog:
        """Logs rows as they come."""
        return TrialLog(self.recorder.is_resumed)

    @cached_property
    def recording(self) -> RecordingReport:
        """Says what a recording run will cost, and which recordings it did not use."""
        return RecordingReport(self.session, self.recorder, self.trials)

    @cached_property
    def marker(self) -> RunMarker:
        """Marks the run in its folder."""
        return RunMarker(self.session)

    @cached_property
    def collection(self) -> CollectedTrials:
        """Knows what was collected."""
        return CollectedTrials(self.session, self.listeners, self.marker.ended)

    @cached_property
    def end(self) -> RunEnd:
        """Does what is done after the last test."""
        session, findings = self.session, self.findings
        return RunEnd(session, self.recorder, findings, self.trials, self.gates, self.recording, self.affected)
