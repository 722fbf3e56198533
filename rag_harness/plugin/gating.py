"""Gates, judged by the one process that sees every result, after the last test; reported as tests of their own."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest

from rag_harness.plugin.options import is_used
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.gates import Gate, Rules, Verdict
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.baseline import SavedRun
    from rag_harness.settings import Settings

NODE = "rag gate"
_Outcome = Literal["passed", "failed", "skipped"]
_OUTCOMES: Mapping[str, _Outcome] = {"passed": "passed", "failed": "failed", "inconclusive": "skipped"}
_CATEGORIES = {"passed": "gates passed", "failed": "failed", "skipped": "gates inconclusive"}


class RulesFor(Protocol):
    """Says how a gate is judged that could be settled early; other gates as ``rules`` say."""

    def __call__(self, gate: Gate, rules: Rules, some_left: bool) -> Rules:
        """``some_left``: not all cases were asked, for all gates of the suite were settled."""
        ...


class GateKeeper:
    """Judges when the tests are done, and says so in the last lines."""

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, rules_for: RulesFor) -> None:
        self._session, self._recorder, self._record, self._rules_for = session, recorder, record, rules_for
        self._used = False
        self.verdicts: list[Verdict] = []
        self.comparison: list[str] = []

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates that are judged in this run: those of the command line, and of the ini file if it is its data.

        Raises:
            SettingsError: a gate cannot be read, or names what does not exist.
        """
        from rag_harness.gates.belonging import check_data
        from rag_harness.gates.reading import read_gates
        from rag_harness.plugin.gate_rules import asked

        session, settings = self._session, self._session.settings
        named = [text for spec in settings.data if not spec.instead for text in spec.gates]
        check_data(settings.data, settings.k, session.data_of)
        return asked(read_gates([*named, *settings.gate], settings.k, self._names, self._slices_of), settings)

    @property
    def _names(self) -> list[str]:
        from rag_harness.gates import BASELINE
        from rag_harness.pipelines import known_experiments

        session = self._session
        baseline = [BASELINE] if session.settings.compare else []
        return [*known_experiments(), GOLDEN, *session.own_experiments, *baseline]

    def _slices_of(self, suite: str) -> dict[str, set[str]]:
        session, found = self._session, dict[str, set[str]]()
        cases = session.golden.slices if suite == GOLDEN else [case.labels for case in session.all_cases_of(suite)]
        for labels in cases:
            for key, value in labels.items():
                found.setdefault(key, set()).add(value)
        return found

    def collection_done(self, selected: Collected) -> None:
        """Note the trials and golden entries that were selected."""
        if is_used(self._session.config) and self._record.note(selected.every):
            self._used = True
            self._check({trial.experiment for trial in selected.every})

    def _check(self, experiments: Collection[str]) -> None:
        from rag_harness.errors import PrerequisiteError
        from rag_harness.gates import Reference
        from rag_harness.plugin.gate_rules import check_clusters

        try:
            gates, _ = self.gates, self.baseline
            check_clusters(gates, self._session)
            self._session.wanted.check_judge(experiments)
        except PrerequisiteError as error:
            raise pytest.UsageError(str(error)) from None
        for gate in gates:
            self._record.want(gate.suite, gate.measure)
            if isinstance(gate.right, Reference):
                self._record.want(gate.right.name, gate.measure)

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

    def _judge(self, session: pytest.Session) -> None:
        if not (self._used or self._recorder.arrived) or session.config.option.collectonly:
            return
        from rag_harness.errors import PrerequisiteError

        refused: list[pytest.TestReport] = []
        try:
            self._record.leave()
            refused += self._compare()
            self.verdicts = [*self._judged(bool(refused)), *self._elsewhere()]
            self._leave_behind()
        except (PrerequisiteError, OSError) as error:
            refused.append(_report("write results", "failed", str(error)))
        reports = [self._report(verdict) for verdict in self.verdicts if verdict.state in _OUTCOMES]
        for report in [*refused, *reports]:
            session.config.hook.pytest_runtest_logreport(report=report)

    def _report(self, verdict: Verdict) -> pytest.TestReport:
        is_red = verdict.state == "inconclusive" and self._session.settings.inconclusive == "fail"
        return _report(str(verdict.gate), "failed" if is_red else _OUTCOMES[verdict.state], verdict.line())

    def _judged(self, refused: bool) -> list[Verdict]:
        return [self._verdict(gate, refused) for gate in self.gates]

    def _verdict(self, gate: Gate, refused: bool) -> Verdict:
        from rag_harness.gates import BASELINE, Reference, Verdict, judge
        from rag_harness.gates.calibrated import corrections
        from rag_harness.measures import measure_named

        spent = sum(trial.experiment == gate.suite for trial in self._recorder.not_run)
        if spent and not self._session.settings.gate_partial:
            # What was not run is no failure, but a release that nobody could judge must not pass for one that was.
            return Verdict(gate, "failed", reason=f"cannot be judged: not run for lack of budget: {spent} trials")
        if refused and isinstance(gate.right, Reference) and gate.right.name == BASELINE:
            return Verdict(gate, "failed", reason="the baseline is of other data")
        if other := self._judged_otherwise(gate):
            return Verdict(gate, "failed", reason=f"the baseline was {other}. Save a new one with --rag-save")
        baseline = self.baseline.suites if self.baseline else {}
        unit = measure_named(gate.measure).unit
        settings = self._session.settings
        correct = corrections(settings.path(settings.judges), self._session.output)
        rules = self._rules_for(gate, self._rules, self._record.has_settled(gate.suite))
        return judge(gate, self._record.tables, settings.gate_partial, baseline, unit, correct, rules)

    @cached_property
    def _rules(self) -> Rules:
        from rag_harness.plugin.gate_rules import rules_of

        return rules_of(self._session.settings, self._record)

    def _judged_otherwise(self, gate: Gate) -> str:
        """Return how the judge of a gate's measure differs from that of the baseline that it names."""
        from rag_harness.gates import BASELINE, Reference

        if not self.baseline or not isinstance(gate.right, Reference) or gate.right.name != BASELINE:
            return ""
        from rag_harness.report.baseline import saved_run

        now = saved_run(self._record.manifest, {})
        return now.judged_otherwise(self.baseline, gate.suite, gate.measure)

    def _elsewhere(self) -> list[Verdict]:
        """Return a verdict for each gate that was set for other data, where its suite ran."""
        from rag_harness.gates import Verdict, parse_gate
        from rag_harness.gates.belonging import gates_of_others

        settings, tables = self._session.settings, self._record.tables
        elsewhere = [*settings.gates_elsewhere, *gates_of_others(settings)]
        gates = [(parse_gate(text, settings.k), why) for text, why in elsewhere]
        return [Verdict(gate, "not judged", reason=why) for gate, why in gates if gate.suite in tables]

    def _compare(self) -> list[pytest.TestReport]:
        """Set this run against the baseline; return a failure where the two are not comparable."""
        if not self.baseline:
            return []
        from rag_harness.errors import DataError
        from rag_harness.report.baseline import saved_run
        from rag_harness.report.comparison import compare, on_common_data

        now = saved_run(self._record.manifest, self._record.tables)
        try:
            self.comparison = compare(*on_common_data(now, self.baseline)).lines()
        except DataError as error:
            return [_report(f"compare with {self._session.settings.compare}", "failed", str(error))]
        return []

    def _leave_behind(self) -> None:
        from rag_harness.report.baseline import save, saved_run
        from rag_harness.report.summary_file import write_summary_file

        settings, record = self._session.settings, self._record
        said, more = record.manifest.settings, record.found
        write_summary_file(self._session.output, record.tables, self.verdicts, said, more)
        self._leave_golden_files(settings)
        if settings.save:
            save(_baseline_file(settings, settings.save), saved_run(record.manifest, record.tables))

    def _leave_golden_files(self, settings: Settings) -> None:
        from rag_harness.report.golden_files import export_trec, trec_folder, write_misses

        record = self._record
        folder = trec_folder(settings.export) if settings.export else ""
        if settings.misses and GOLDEN in record.tables:
            write_misses(settings.path(settings.misses), record.retrievals, record.tables[GOLDEN])
        if folder and GOLDEN in record.tables:
            export_trec(settings.path(folder), record.retrievals, settings.retriever)

    @cached_property
    def baseline(self) -> SavedRun | None:
        """The run that --rag-compare names.

        Raises:
            DataError: there is none of that name.
        """
        from rag_harness.report.baseline import load

        settings = self._session.settings
        return load(_baseline_file(settings, settings.compare)) if settings.compare else None

    def pytest_report_teststatus(self, report: Any) -> Any:
        """Keep gates out of the progress: a percentage of tests, and dots. A failed one is a failure like others."""
        if not hasattr(report, "rag_gate"):
            return None
        return _CATEGORIES[report.outcome], "", ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Print the comparison, and a line a gate below everything else."""
        yield
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


def _report(name: str, outcome: _Outcome, text: str) -> pytest.TestReport:
    """Return a verdict as the report of a test: terminal, JUnit XML and JSON reports then all show it."""
    return pytest.TestReport(
        # Brackets would be taken for the id of a parameter, and be cut off.
        nodeid=f"{NODE}::{name.replace('[', '(').replace(']', ')')}",
        location=(NODE, None, name),
        keywords={NODE: 1},
        outcome=outcome,
        longrepr={"passed": None, "failed": text, "skipped": (NODE, 0, f"inconclusive: {text}")}[outcome],
        when="call",
        user_properties=[("rag_gate", text)],
        rag_gate=name,
    )
