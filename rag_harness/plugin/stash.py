"""What the plugin keeps on config and items, and the moment it wakes up: in a suite that never uses it, it sleeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rag_harness.golden.run import RetrievalResult
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import Shipped

SESSION: pytest.StashKey[RagSession] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
SHIPPED: pytest.StashKey[Shipped] = pytest.StashKey()
NOT_RUN: pytest.StashKey[tuple[str, str]] = pytest.StashKey()
RETRIEVAL: pytest.StashKey[RetrievalResult] = pytest.StashKey()


def wake(config: pytest.Config) -> RagSession:
    """Return the state of the run. The first call makes it, and in the process that writes, recorder and gates."""
    if SESSION not in config.stash:
        from rag_harness.plugin.gating import GateKeeper
        from rag_harness.plugin.progress import Progress
        from rag_harness.plugin.recorder import Recorder
        from rag_harness.plugin.recording_report import RecordingReport
        from rag_harness.plugin.session import RagSession

        config.stash[SESSION] = session = RagSession(config)
        if not hasattr(config, "workerinput"):
            config.stash[RECORDER] = recorder = Recorder(session)
            config.pluginmanager.register(recorder, "rag_harness.recorder")
            config.pluginmanager.register(GateKeeper(session, recorder), "rag_harness.gates")
            config.pluginmanager.register(Progress(session), "rag_harness.progress")
            config.pluginmanager.register(RecordingReport(session, recorder), "rag_harness.recording")
    return config.stash[SESSION]


class Waker:
    """Wakes the controller of an xdist run, which collects nothing itself, when the first result arrives."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Hand over a result that nobody was there to take."""
        asleep = SESSION not in self._config.stash and not hasattr(self._config, "workerinput")
        if asleep and (hasattr(report, "rag_row") or hasattr(report, "rag_retrieval")):
            wake(self._config)
            self._config.stash[RECORDER].pytest_runtest_logreport(report)
