"""Gates, judged by the one process that sees every result, after the last test; reported as tests of their own."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rag_harness.gates import Gate, Verdict
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.scores import SuiteTable

NODE = "rag gate"
GOLDEN = "golden"


class GateKeeper:
    """Knows which cases were selected, judges when the tests are done, and says so in the last lines."""

    def __init__(self, session: RagSession, recorder: Recorder) -> None:
        self._session, self._recorder = session, recorder
        self._selected: dict[str, None] = {}
        self.verdicts: list[Verdict] = []

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates of ini and command line.

        Raises:
            SettingsError: a gate cannot be read, or names what does not exist.
        """
        from rag_harness.plugin.suites import read_gates

        return read_gates(self._session)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the trials and golden entries that were selected."""
        self._note(_param_id(item.nodeid) for item in session.items)
        if self._selected:
            self._check()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Do the same under xdist, where only workers collect; all of them collect the same."""
        self._note(_param_id(nodeid) for nodeid in ids)

    def _note(self, ids: Iterable[str]) -> None:
        self._selected |= dict.fromkeys(each for each in ids if each)

    def _check(self) -> None:
        from rag_harness.errors import PrerequisiteError

        try:
            assert self.gates is not None
        except PrerequisiteError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Judge when all tests have run, also where one of ours stopped the run; not after Ctrl-C."""
        try:
            return (yield)
        finally:
            if self._used and not session.config.option.collectonly:
                self._judge(session)

    @property
    def _used(self) -> bool:
        return bool(self._recorder.rows or self._recorder.retrievals or self._selected)

    def _judge(self, session: pytest.Session) -> None:
        from rag_harness.gates import judge

        suites = self.tables
        partial = self._session.settings.gate_partial
        self.verdicts = [judge(gate, suites, partial) for gate in self.gates]
        for verdict in self.verdicts:
            if verdict.state in ("passed", "failed"):
                session.config.hook.pytest_runtest_logreport(report=_report(verdict))

    @cached_property
    def tables(self) -> Mapping[str, SuiteTable]:
        """The cases of every suite that this run has to do with."""
        from rag_harness.plugin.suites import suite_tables

        return suite_tables(self._session, self._recorder, list(self._selected))

    def pytest_report_teststatus(self, report: Any) -> Any:
        """Keep gates out of the progress: a percentage of tests, and dots. A failed one is a failure like others."""
        if not hasattr(report, "rag_gate"):
            return None
        return ("failed" if report.failed else "gates passed"), "", ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Write a line a gate below everything else."""
        yield
        shown = [verdict for verdict in self.verdicts if verdict.state != "silent"]
        if shown:
            terminalreporter.section("rag gates", sep="=")
        for verdict in shown:
            colour = {"passed": "green", "failed": "red"}.get(verdict.state, "yellow")
            terminalreporter.line(verdict.line(), **{colour: True})


def _param_id(nodeid: str) -> str:
    return nodeid[nodeid.index("[") + 1 : -1] if nodeid.endswith("]") else ""


def _report(verdict: Verdict) -> pytest.TestReport:
    """Return the verdict as the report of a test: terminal, JUnit XML and JSON reports then all show it."""
    name = str(verdict.gate)
    return pytest.TestReport(
        nodeid=f"{NODE}::{name}",
        location=(NODE, None, name),
        keywords={NODE: 1},
        outcome="passed" if verdict.state == "passed" else "failed",
        longrepr=None if verdict.state == "passed" else verdict.line(),
        when="call",
        user_properties=[("rag_gate", verdict.line())],
        rag_gate=name,
    )
