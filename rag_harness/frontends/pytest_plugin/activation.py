"""Activation of the plugin when a suite first uses it, its end, and the mark of a run in its output folder."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rag_harness.frontends.pytest_plugin.items import CAUSES_DUE, OWED, RECORDER, SESSION, TRIALS
from rag_harness.frontends.pytest_plugin.options import command_said, output_asked
from rag_harness.frontends.pytest_plugin.terminal import has_failed_to_collect

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.frontends.pytest_plugin.affected import Affected
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner


# Puts the plugin together when a suite first uses it. Until then nothing is made.

_VALUE = r"""[ \t]*(?:export[ \t]+)?{name}[ \t]*=[ \t]*["']?([^"'#\n]+)"""
"""A line of ``.env``."""


def wake(config: pytest.Config) -> RagSession:
    """Return the state of the run. The first call makes it, and registers the writers in the process that writes."""
    if SESSION not in config.stash:
        from rag_harness.frontends.pytest_plugin.affected import Affected
        from rag_harness.frontends.pytest_plugin.collection import CollectedByWorker
        from rag_harness.frontends.pytest_plugin.collection import ExperimentExpectations as OwnExpectations
        from rag_harness.frontends.pytest_plugin.session import RagSession
        from rag_harness.frontends.pytest_plugin.trials import TrialRunner

        config.stash[SESSION] = session = RagSession(config)
        config.stash[TRIALS] = trials = TrialRunner(session)
        affected = Affected(session)
        config.pluginmanager.register(affected, "rag_harness.affected")
        config.stash[OWED] = owed = OwnExpectations(session)
        # Registered later, it comes after what --rag-affected-by leaves out.
        config.pluginmanager.register(owed, "rag_harness.own_expectations")
        if not hasattr(config, "workerinput"):
            _register_writers(config, session, trials, affected)
        else:
            config.pluginmanager.register(CollectedByWorker(), "rag_harness.collection")
    return config.stash[SESSION]


def _register_writers(config: pytest.Config, session: RagSession, trials: TrialRunner, affected: Affected) -> None:
    """Register the objects that write files, gate the run and print. The order of the listeners matters."""
    from rag_harness.frontends.pytest_plugin.collection import CollectedTrials
    from rag_harness.frontends.pytest_plugin.early_stop import EarlyStopping
    from rag_harness.frontends.pytest_plugin.end_of_run import InnerEnd, OuterEnd, RunEnd
    from rag_harness.frontends.pytest_plugin.gate_reports import GateKeeper
    from rag_harness.frontends.pytest_plugin.gates import RunGates
    from rag_harness.frontends.pytest_plugin.progress import Progress, TrialLog
    from rag_harness.frontends.pytest_plugin.readiness import Readiness, RecordingReport
    from rag_harness.frontends.pytest_plugin.recorder import ColumnWriter as TableKeeping
    from rag_harness.frontends.pytest_plugin.recorder import Recorder, TableMeasures
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings, RunRecord
    from rag_harness.frontends.pytest_plugin.sections import Slices

    config.stash[RECORDER] = recorder = Recorder(session)
    measures = TableMeasures(session)
    record = RunRecord(session, recorder, measures)
    findings = RunFindings(session, recorder, record, measures)
    early = EarlyStopping(session, recorder, trials, lambda: run.gates)
    run = RunGates(session, recorder, findings, early.rules_for, affected.is_all_of)
    gates = GateKeeper(session, recorder, record, run)
    progress = Progress(session, lambda: trials.equipment.in_flight, recorder.is_resumed)
    recording = RecordingReport(session, recorder, trials)
    trial_log = TrialLog(recorder.is_resumed)
    keeping = TableKeeping(session.cases, record, measures)
    recorder.written, recorder.scored = keeping.take, keeping.take_score
    record.before_reading.append(keeping.seal)
    # The recorder comes first: it locks the folder, and takes over what an earlier run left before a trial is looked
    # up. The mark of the run follows. The gates come third: they are read before the costs of the run are printed.
    run_end = RunEnd(session, recorder, findings, trials, gates, recording, affected)
    ends = (run_end.shown, run_end.otlp, run_end.tuning)
    checks = (Readiness(session, trials), Slices(session, measures), *ends)
    mark = RunMarker(session)
    told = (recorder, mark, gates, *checks, progress, trial_log, recording, keeping)
    collection = CollectedTrials(session, told, mark.ended)
    register = config.pluginmanager.register
    register(recorder, "rag_harness.recorder")
    register(run_end.golden, "rag_harness.golden")
    register(gates, "rag_harness.runs.gates")
    register(early, "rag_harness.early_stop")
    register(progress, "rag_harness.progress")
    register(trial_log, "rag_harness.trial_log")
    register(recording, "rag_harness.recording")
    register(run_end.worker_cost, "rag_harness.worker_cost")
    register(mark, "rag_harness.begun_mark")
    register(collection, "rag_harness.collection")
    register(InnerEnd(run_end), "rag_harness.inner_end")
    register(OuterEnd(run_end, progress), "rag_harness.outer_end")


class LazyActivation:
    """Wakes the controller of an xdist run, which collects nothing itself, when the first result arrives."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Wake the run and hand over the result, if nothing has taken it yet."""
        asleep = SESSION not in self._config.stash and not hasattr(self._config, "workerinput")
        if asleep and hasattr(report, "rag_row"):
            wake(self._config)
            self._config.stash[RECORDER].pytest_runtest_logreport(report)


def stop_calls(config: pytest.Config) -> None:
    """Make no more calls. A worker also tells the controller which recordings it has used."""
    if SESSION not in config.stash:
        return
    if not config.stash.get(CAUSES_DUE, False):  # else when they are worked out
        config.stash[TRIALS].equipment.stop()
    session = config.stash[SESSION]
    if hasattr(config, "workeroutput") and session.access.records:
        from rag_harness.frontends.pytest_plugin.readiness import used_recordings

        config.workeroutput.update(used_recordings(session))


def close(config: pytest.Config) -> None:
    """Stop the engine, write what came back, and close the log. Each step runs even if an earlier one failed."""
    from contextlib import ExitStack

    if SESSION not in config.stash:
        return
    with ExitStack() as closing:
        if RECORDER in config.stash:
            closing.callback(config.stash[RECORDER].finish)
        closing.callback(config.stash[SESSION].close)
        closing.callback(config.stash[TRIALS].equipment.close)


def hint_at_waking(config: pytest.Config) -> str:
    """Return what to add so that the plugin wakes; empty where no experiment is asked for.

    A variable alone does not wake it: it may be set for others.
    """
    from rag_harness.core.settings import env_name, options

    name = env_name(next(each for each in options() if each.name == "run"))
    run, where = os.environ.get(name, "").strip(), "the environment"
    if not run:
        run, where = _in_file(config, name), ".env"
    if not run:
        return ""
    ini = config.inipath.name if config.inipath else ""
    add = f"rag_run = {run} to {ini}" if ini else f"rag_run = {run} below [pytest] to a pytest.ini"
    return (
        f"rag: {name}={run} ({where}) asks for experiments, but nothing here uses the plugin, so none was asked. "
        f"Add {add}, or run pytest --rag-run={run}"
    )


def _in_file(config: pytest.Config, name: str) -> str:
    # python-dotenv is not imported where the plugin sleeps; what it reads from this line is the same.
    from rag_harness.frontends.pytest_plugin.options import settings_folder

    try:
        text = (settings_folder(config) / ".env").read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""
    found = re.findall(rf"^{_VALUE.format(name=name)}", text, re.MULTILINE)
    return found[-1].strip() if found else ""


# Marks a run in its output folder from before its first question until it leaves results, or says why it left none.
#
# A report of the folder would otherwise speak of the run before as if it were the last one.

_PRESSED = "it was interrupted."


class RunMarker:
    """The mark of this run, in the process that writes."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._is_begun = False

    def collection_done(self, selected: Collected) -> None:
        """Mark the run, if it has a question to ask. The folder is there, and it is locked."""
        if not self._session.config.option.collectonly and selected.by_node:
            self._is_begun = True
            _mark(self._session.config, self._session.output, "")

    def ended(self, why: str) -> None:
        """Note why a marked run ends. Nothing is noted once its results are there."""
        from rag_harness.records.manifest import read_begun

        if self._is_begun and read_begun(self._session.output) is not None:
            _mark(self._session.config, self._session.output, why)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why pytest has stopped."""
        self.ended(str(excinfo.value) or _PRESSED)

    def pytest_sessionfinish(self) -> None:
        """Note that tests could not be collected: under xdist, pytest is not stopped by that."""
        if not self._is_begun and has_failed_to_collect(self._session.config) and self._session.is_whole:
            refused(self._session.config, "tests could not be collected.")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Note the error."""
        self.ended(str(excrepr).rpartition("\n")[2])


def refused(config: pytest.Config, why: object) -> None:
    """Mark a run that ended before it could begin, in a folder where an earlier one left results."""
    from rag_harness.records.manifest import MANIFEST

    only_asks = config.option.collectonly or config.option.help or config.option.version
    output = output_asked(config)
    if not only_asks and not hasattr(config, "workerinput") and (output / MANIFEST).is_file():
        _mark(config, output, str(why))


def _mark(config: pytest.Config, output: Path, why: str) -> None:
    from rag_harness.core.files import now
    from rag_harness.records.manifest import BegunRun, write_begun

    with suppress(OSError):  # a disk that is full keeps no results either, and says so by itself
        write_begun(output, BegunRun(date=now(), command=command_said(config), why=why))
