"""Gates, judged by the one process that sees every result, after the last test; reported as tests of their own."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.plugin.options import is_used

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.gates import Gate, Verdict
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.baseline import SavedRun
    from rag_harness.report.scores import SuiteTable
    from rag_harness.settings import Settings

NODE = "rag gate"
GOLDEN = "golden"


class GateKeeper:
    """Knows which cases were selected, judges when the tests are done, and says so in the last lines."""

    def __init__(self, session: RagSession, recorder: Recorder) -> None:
        self._session, self._recorder = session, recorder
        self._selected: dict[str, None] = {}
        self.verdicts: list[Verdict] = []
        self.comparison: list[str] = []

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates of ini and command line.

        Raises:
            SettingsError: a gate cannot be read, or names what does not exist.
        """
        from rag_harness.plugin.suites import read_gates

        return read_gates(self._session)

    def collection_done(self, selected: Collected) -> None:
        """Note the trials and golden entries that were selected."""
        if not is_used(self._session.config):
            return
        self._selected |= dict.fromkeys(map(str, selected.every))
        if self._selected:
            self._check()

    def _check(self) -> None:
        from rag_harness.errors import PrerequisiteError

        try:
            _ = self.gates, self.baseline
        except PrerequisiteError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Judge when all tests have run, also where one of ours stopped the run; not after Ctrl-C."""
        try:
            result = yield
        except (pytest.UsageError, KeyboardInterrupt):
            raise
        except BaseException:
            self._judge(session)
            raise
        self._judge(session)
        return result

    @property
    def _used(self) -> bool:
        return bool(self._recorder.rows or self._recorder.retrievals or self._selected)

    def _judge(self, session: pytest.Session) -> None:
        if not self._used or session.config.option.collectonly:
            return
        from rag_harness.errors import PrerequisiteError

        refused = self._compare()
        self.verdicts = [self._verdict(gate, bool(refused)) for gate in self.gates]
        try:
            self._leave_behind()
        except PrerequisiteError as error:
            refused.append(_report("write results", False, str(error)))
        judged = [each for each in self.verdicts if each.state in ("passed", "failed")]
        for report in [*refused, *(_report(str(each.gate), each.state == "passed", each.line()) for each in judged)]:
            session.config.hook.pytest_runtest_logreport(report=report)

    def _verdict(self, gate: Gate, refused: bool) -> Verdict:
        from rag_harness.gates import BASELINE, Reference, Verdict, judge

        spent = [trial for trial in self._recorder.not_run if trial.experiment == gate.suite]
        if spent and not self._session.settings.gate_partial:
            # What was not run is no failure, but a release that nobody could judge must not pass for one that was.
            return Verdict(gate, "failed", reason=f"cannot be judged: not run for lack of budget: {len(spent)} trials")
        if refused and isinstance(gate.right, Reference) and gate.right.name == BASELINE:
            return Verdict(gate, "failed", reason="the baseline is of other data")
        baseline = self.baseline.suites if self.baseline else {}
        return judge(gate, self.tables, self._session.settings.gate_partial, baseline)

    def _compare(self) -> list[pytest.TestReport]:
        """Set this run against the baseline; return a failure where the two are not comparable."""
        if not self.baseline:
            return []
        from rag_harness.errors import DataError
        from rag_harness.plugin import artifacts
        from rag_harness.report.comparison import compare

        now = artifacts.saved_run(self._session, self.tables)
        try:
            self.comparison = compare(*artifacts.on_common_data(now, self.baseline)).lines()
        except DataError as error:
            return [_report(f"compare with {self._session.settings.compare}", False, str(error))]
        return []

    def _leave_behind(self) -> None:
        from rag_harness.plugin import artifacts
        from rag_harness.report.baseline import save

        settings, found = self._session.settings, self._recorder.retrievals
        artifacts.write_summary_file(settings, self.tables, self.verdicts)
        artifacts.write_misses(settings, found)
        artifacts.export_trec(settings, found)
        if settings.save:
            save(_baseline_file(settings, settings.save), artifacts.saved_run(self._session, self.tables))

    @cached_property
    def baseline(self) -> SavedRun | None:
        """The run that --rag-compare names.

        Raises:
            DataError: there is none of that name.
        """
        from rag_harness.report.baseline import load

        settings = self._session.settings
        return load(_baseline_file(settings, settings.compare)) if settings.compare else None

    @cached_property
    def tables(self) -> Mapping[str, SuiteTable]:
        """The cases of every suite that this run has to do with."""
        from rag_harness.plugin.suites import suite_tables

        return suite_tables(self._session, self._recorder, list(self._selected))

    def _write_golden(self, terminal: pytest.TerminalReporter) -> None:
        from rag_harness.plugin.terminal import about_retrieval
        from rag_harness.report.golden_summary import golden_lines

        terminal.section("rag golden", sep="=")
        terminal.line(about_retrieval(self._session))
        if GOLDEN in self.tables:
            terminal.line("\n".join(golden_lines(self.tables[GOLDEN], list(self._recorder.retrievals.values()))))

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Let --lf run misses again, although they are no failures: pytest's cache forgets what was skipped."""
        yield
        # No attribute where the user switched the cache off.
        cache = getattr(session.config, "cache", None)
        if cache is None:
            return
        failed: dict[str, bool] = cache.get("cache/lastfailed", {})
        missed = dict.fromkeys((node for node, found in self._recorder.found.items() if not found), True)
        if missed:
            cache.set("cache/lastfailed", {**failed, **missed})

    def pytest_report_teststatus(self, report: Any) -> Any:
        """Keep gates out of the progress: a percentage of tests, and dots. A failed one is a failure like others."""
        if not hasattr(report, "rag_gate"):
            return None
        return ("failed" if report.failed else "gates passed"), "", ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Write a line a gate below everything else."""
        yield
        if self._recorder.retrievals:
            self._write_golden(terminalreporter)
        if self.comparison:
            terminalreporter.section("rag comparison", sep="=")
            terminalreporter.line("\n".join(self.comparison))
        shown = [verdict for verdict in self.verdicts if verdict.state != "silent"]
        if shown:
            from rag_harness.gates import verdict_lines

            terminalreporter.section("rag gates", sep="=")
            for verdict, line in zip(shown, verdict_lines(shown), strict=True):
                colour = {"passed": "green", "failed": "red"}.get(verdict.state, "yellow")
                terminalreporter.line(line, **{colour: True})


def _baseline_file(settings: Settings, name: str) -> Path:
    return settings.path(settings.baselines) / f"{name}.json"


def _report(name: str, passed: bool, text: str) -> pytest.TestReport:
    """Return a verdict as the report of a test: terminal, JUnit XML and JSON reports then all show it."""
    return pytest.TestReport(
        # Brackets would be taken for the id of a parameter, and be cut off.
        nodeid=f"{NODE}::{name.replace('[', '(').replace(']', ')')}",
        location=(NODE, None, name),
        keywords={NODE: 1},
        outcome="passed" if passed else "failed",
        longrepr=None if passed else text,
        when="call",
        user_properties=[("rag_gate", text)],
        rag_gate=name,
    )
