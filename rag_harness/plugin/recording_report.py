"""Reports of a recording run: before it, what it will cost; after it, which recordings were not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.files.log import log
from rag_harness.plugin.progress import speaks
from rag_harness.plugin.readiness import to_run
from rag_harness.plugin.screen import write_lines
from rag_harness.types import GOLDEN
from rag_harness.work.reporting import WorkHeard, listening

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner

_USED = "rag_used_recordings"


class RecordingReport:
    """Prints both reports, in the process that prints."""

    def __init__(self, session: RagSession, recorder: Recorder, trials: TrialRunner) -> None:
        self._session, self._recorder, self._trials = session, recorder, trials
        self._said = False
        self._used: set[Path] = set()

    def collection_done(self, selected: Collected) -> None:
        """Say what this run will ask for. Index and vectors are made here, once for all workers."""
        session = self._session
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if session.config.option.collectonly or not session.access.records or terminal is None:
            return
        if selected.by_node:
            self._said = True
            with _progress_lines(session.config):
                line = _forecast(session, self._trials, selected)
            if line:
                terminal.ensure_newline()
                write_lines(terminal, [line])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker which recordings it has used."""
        self._used |= {Path(each) for each in getattr(node, "workeroutput", {}).get(_USED, ())}

    def unused_lines(self) -> list[str]:
        """Name recordings that the run did not use: prompts or settings have changed since."""
        session = self._session
        if not self._said or not self._recorder.trials:
            return []
        arrived = {name: ids for name, ids in self._recorder.arrived.items() if name != GOLDEN}
        if any(len(ids) < len(session.cases.all_of(name)) for name, ids in arrived.items()):
            return []  # a selection uses only a part of the recordings
        if self._recorder.resumed:
            return ["Some trials were resumed: a run with --rag-overwrite can tell which recordings are unused."]
        cassettes = session.parts.cassettes
        cassettes.used |= self._used
        unused = [file.relative_to(cassettes.folder).as_posix() for file in cassettes.unused()]
        if not unused:
            return []
        log.info("Recordings that this run did not ask for: %s", unused)
        where = f"{session.settings.folder_said('cassettes')}/{session.settings.profile}/"
        return [f"{len(unused)} recordings in {where} are not of this run, e.g. {unused[0]}; all are in the log."]


def used_recordings(session: RagSession) -> dict[str, list[str]]:
    """Return what a worker tells the controller when it ends."""
    return {_USED: [str(file) for file in session.cassettes_used()]}


@contextmanager
def _progress_lines(config: pytest.Config) -> Iterator[None]:
    """Print how far the forecast is while it takes long, and what it waits for, such as vectors of documents."""
    if not speaks(config):
        yield
        return
    from rag_harness.plugin.work_lines import WorkLines

    work = WorkHeard()
    with listening(work.hear), WorkLines(config.get_terminal_writer(), work.text):
        yield


def _forecast(session: RagSession, trials: TrialRunner, selected: Collected) -> str:
    """Return the line about what the selected trials will ask for."""
    from rag_harness.engine.expected import forecast
    from rag_harness.errors import RagHarnessError
    from rag_harness.judges.traits import asks_a_model
    from rag_harness.pipelines import is_known

    try:
        names = dict.fromkeys(
            trial.experiment for trial in selected.trials if is_known(trial.experiment, session.settings)
        )
        left = to_run(session, trials, selected, [*names])
        known = {name: [case for case in cases if case.has_text] for name, cases in left.items()}
        found = forecast(session.parts, known, _queries(session, selected))
        found.unknown += sum(not case.has_text for cases in left.values() for case in cases)
    except RagHarnessError as error:
        # The first trial will meet the same error, and will report it.
        return f"rag: recording: what it will cost cannot be told: {error}"
    found.unknown += len(selected.own)
    asks = found.chat.recorded or found.chat.to_send or found.texts or found.unknown or found.services
    judged = asks_a_model(session.settings) and any(session.wanted.judged_names(t.experiment) for t in selected.trials)
    return f"{found.line()}{'; and what the judge is asked' * judged}" if asks or judged else ""


def _queries(session: RagSession, selected: Collected) -> list[str]:
    """Return the queries that will be embedded."""
    entries = [query.text for query in session.golden.queries] if selected.golden else []
    names = dict.fromkeys(trial.experiment for trial in selected.trials)
    return [
        *entries,
        *dict.fromkeys(case.query.text for name in names for case in session.cases.of(name) if case.has_text),
    ]
