"""Activation of the plugin when a suite first uses it, the objects that it registers, and its end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rag_harness.frontends.pytest_plugin.stash import CARRIED, CAUSES_DUE, OWED, RECORDER, SESSION, TRIALS

if TYPE_CHECKING:
    import pytest

    from rag_harness.frontends.pytest_plugin.session import RagSession


When: TypeAlias = Literal["always", "used", "worker", "writer"]
"""Where an object is registered: in each process at its start; in each whose suite uses the plugin; of these, in the
workers of xdist, or in the one process that writes and prints."""


PLUGIN_OBJECTS: Sequence[tuple[str, str, When]] = (
    ("rag_harness.waker", "LazyActivation", "always"),
    ("rag_harness.affected", "Affected", "used"),
    # Registered later, it comes after what --rag-affected-by leaves out.
    ("rag_harness.own_expectations", "ExperimentExpectations", "used"),
    ("rag_harness.collection", "CollectedByWorker", "worker"),
    ("rag_harness.recorder", "Recorder", "writer"),
    ("rag_harness.golden", "GoldenSection", "writer"),
    ("rag_harness.runs.gates", "GateKeeper", "writer"),
    ("rag_harness.early_stop", "EarlyStopping", "writer"),
    ("rag_harness.figures_ahead", "FiguresAhead", "writer"),
    ("rag_harness.progress", "Progress", "writer"),
    ("rag_harness.trial_log", "TrialLog", "writer"),
    ("rag_harness.recording", "RecordingReport", "writer"),
    ("rag_harness.worker_cost", "WorkerCost", "writer"),
    ("rag_harness.begun_mark", "RunMarker", "writer"),
    ("rag_harness.collection", "CollectedTrials", "writer"),
    ("rag_harness.inner_end", "InnerEnd", "writer"),
    ("rag_harness.outer_end", "OuterEnd", "writer"),
)
"""The objects that are registered with pytest: name, class, and where.

They are in the order of their registration: of two that have one hook, pytest calls the later one first. A name
switches its object off, as in ``-p no:rag_harness.progress``.
"""


def register(config: pytest.Config, when: When, made: Iterable[object]) -> None:
    """Register the objects of the table that belong here; ``made`` has one of each class."""
    by_kind = {type(each).__name__: each for each in made}
    for name, kind, here in PLUGIN_OBJECTS:
        if here == when:
            config.pluginmanager.register(by_kind[kind], name)


def wake(config: pytest.Config) -> RagSession:
    """Return the state of the run. The first call makes it, and registers what the plugin needs in this process."""
    if SESSION not in config.stash:
        from rag_harness.frontends.pytest_plugin.affected import Affected
        from rag_harness.frontends.pytest_plugin.collection import CollectedByWorker, ExperimentExpectations
        from rag_harness.frontends.pytest_plugin.session import RagSession
        from rag_harness.frontends.pytest_plugin.trials import TrialRunner
        from rag_harness.frontends.pytest_plugin.workers import is_worker

        config.stash[SESSION] = session = RagSession(config)
        config.stash[TRIALS] = trials = TrialRunner(session)
        config.stash[OWED] = owed = ExperimentExpectations(session)
        affected = Affected(session)
        register(config, "used", (affected, owed))
        if is_worker(config):
            register(config, "worker", [CollectedByWorker()])
        else:
            from rag_harness.frontends.pytest_plugin.writer import Writer

            writer = Writer(session, trials, affected)
            config.stash[RECORDER] = writer.recorder
            register(config, "writer", writer.registered())
    return config.stash[SESSION]


class LazyActivation:
    """Wakes the controller of an xdist run, which collects nothing itself, when the first result arrives."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Wake the run and hand over the result, if nothing has taken it yet."""
        if SESSION in self._config.stash or not hasattr(report, CARRIED):
            return
        from rag_harness.frontends.pytest_plugin.trial_report import carried_by
        from rag_harness.frontends.pytest_plugin.workers import is_worker

        if carried_by(report).row is not None and not is_worker(self._config):
            wake(self._config)
            self._config.stash[RECORDER].pytest_runtest_logreport(report)


def stop_calls(config: pytest.Config) -> None:
    """Make no more calls. A worker also tells the controller which recordings it has used."""
    if SESSION not in config.stash:
        return
    from rag_harness.frontends.pytest_plugin.workers import USED_RECORDINGS, is_worker

    config.stash[TRIALS].preparation.close()
    if not config.stash.get(CAUSES_DUE, False):  # else when they are worked out
        config.stash[TRIALS].equipment.stop()
    session = config.stash[SESSION]
    if is_worker(config) and session.access.records:
        USED_RECORDINGS.send(config, [str(file) for file in session.cassettes_used()])


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


_VALUE = r"""[ \t]*(?:export[ \t]+)?{name}[ \t]*=[ \t]*["']?([^"'#\n]+)"""
"""A line of ``.env``."""


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
