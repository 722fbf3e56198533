"""Of a recording run: what it will cost, before it starts; which recordings nobody asked for, when it is over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.files.log import log
from rag_harness.plugin.batches import param_id
from rag_harness.plugin.trials import own_fixture

if TYPE_CHECKING:
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.types import Case

_USED = "rag_used_recordings"


class RecordingReport:
    """Lives in the process that prints."""

    def __init__(self, session: RagSession, recorder: Recorder) -> None:
        self._session, self._recorder = session, recorder
        self._said = False
        self._used: set[Path] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say what this run will ask for."""
        own = {param_id(item.nodeid) for item in session.items if own_fixture(item) is not None}
        self._say({param_id(item.nodeid) for item in session.items}, own)

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Do the same under xdist, before work is handed out: index and vectors are made here, once for all workers."""
        self._say({param_id(nodeid) for nodeid in ids}, set())

    def _say(self, ids: set[str], own: set[str]) -> None:
        session = self._session
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if self._said or session.config.option.collectonly:
            return
        if session.settings.mode == "record" and terminal is not None and any(session.selected(ids)):
            self._said = True
            line = _forecast(session, ids, own)
            if line:
                terminal.ensure_newline()
                terminal.line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker what it has used."""
        self._used |= {Path(each) for each in getattr(node, "workeroutput", {}).get(_USED, ())}

    def unused_lines(self) -> list[str]:
        """Name recordings that the run did not ask for: prompts or settings have changed since."""
        session = self._session
        if not self._said or not self._recorder.trials:
            return []
        if self._recorder.trials % len(session.cases) or session.settings.limit:
            return []  # a selection asks for a part
        if self._recorder.resumed:
            return ["Some trials were resumed: a run with --rag-overwrite can tell which recordings are unused."]
        cassettes = session.parts.cassettes
        cassettes.used |= self._used
        unused = [file.relative_to(cassettes.folder).as_posix() for file in cassettes.unused()]
        if not unused:
            return []
        log.info("Recordings that this run did not ask for: %s", unused)
        where = f"{session.settings.cassettes}/{session.settings.profile}/"
        return [f"{len(unused)} recordings in {where} are not of this run, e.g. {unused[0]}; all are in the log."]


def used_recordings(session: RagSession) -> dict[str, list[str]]:
    """Return what a worker tells the controller when it ends."""
    parts = vars(session).get("parts")
    cassettes = vars(parts).get("cassettes") if parts else None
    return {_USED: [str(file) for file in cassettes.used]} if cassettes else {}


def _forecast(session: RagSession, ids: set[str], own: set[str]) -> str:
    """Return what the trials ``ids`` will ask for; ``own`` are those of pipelines of the user's own."""
    from rag_harness.engine.expected import forecast
    from rag_harness.errors import RagHarnessError

    try:
        found = forecast(session.parts, _to_run(session, ids - own), _queries(session, ids))
    except RagHarnessError as error:
        # The first trial will meet the same, and say it where it counts.
        return f"rag: recording: what it will cost cannot be told: {error}"
    found.unknown += sum(each in own for each in ids)
    return found.line() if found.chat.recorded or found.chat.to_send or found.texts or found.unknown else ""


def _to_run(session: RagSession, ids: set[str]) -> dict[str, list[Case]]:
    """Return the cases that are to be run, by registered experiment."""
    from rag_harness.engine.rows import Trial
    from rag_harness.pipelines import known_experiments

    found: dict[str, list[Case]] = {}
    for name in known_experiments():
        if any(each.startswith(f"{name}-") for each in ids):
            pipeline = session.pipeline(name)
            cases = [case for case in session.cases if f"{name}-{case.query.query_id}" in ids]
            found[name] = [case for case in cases if session.trials.stored(Trial(name, case), pipeline) is None]
    return {name: cases for name, cases in found.items() if cases}


def _queries(session: RagSession, ids: set[str]) -> list[str]:
    """Return the queries that will be embedded."""
    golden = any(each.startswith("golden-") for each in ids)
    entries = [case.query for case in session.golden.cases.values()] if golden else []
    return [*entries, *([case.query.text for case in session.cases] if len(ids) > len(entries) else ())]
