"""The verdicts of gates as reports of pytest, and warnings about figures without a gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pytest

from rag_harness.core.escaping import columns, terminal_block
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.gates import write_summary_files
from rag_harness.frontends.pytest_plugin.options import is_used
from rag_harness.frontends.pytest_plugin.terminal import (
    has_failed_to_collect,
    make_inert,
    never_stopping,
    usage_error,
    write_lines,
    write_section,
)
from rag_harness.frontends.pytest_plugin.trial_report import TrialReport, carried_by, put_on
from rag_harness.tables.wording import joined_names

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.gates import RunGates
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.run_record import RunRecord
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.runs.gates import Gate, Verdict
    from rag_harness.runs.gates.grammar import Gate as GrammarGate
    from rag_harness.tables.comparison import Comparison
    from rag_harness.tables.suite_table import SuiteTable


# Judges the gates after the last test, in the one process that sees every result. Each gate is reported as a test.

NODE = "rag gate"
_Outcome = Literal["passed", "failed", "skipped"]
_OUTCOMES: Mapping[str, _Outcome] = {"passed": "passed", "failed": "failed", "stale": "failed", "xpassed": "failed"}
"""The outcome of a gate's report, by the gate's state; a state that is not listed is skipped."""
_COLOURS = {"passed": "green", "failed": "red", "stale": "red", "xpassed": "red"}


class GateKeeper:
    """Judges the gates after the tests, and prints the verdicts as the last lines."""

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, run: RunGates) -> None:
        self._session, self._recorder, self._record, self._run = session, recorder, record, run
        self._findings, self.configured = run.findings, run.configured
        self._used = self._are_told = False
        self._unselected = ""
        self.verdicts: list[Verdict] = []
        self.unchecked: Mapping[str, int] = {}
        self.comparison: Comparison | None = None

    def collection_done(self, selected: Collected) -> None:
        """Note the trials and golden entries that were selected."""
        if not is_used(self._session.config):
            return
        self._used = self._record.note(selected.every)
        # A run of other tests need not read the gates only to say that it judges none of them.
        if self._used or self._run.reach.is_whole:
            self._check({trial.experiment for trial in selected.every})

    def _check(self, experiments: Collection[str]) -> None:
        from rag_harness.core.errors import PrerequisiteError
        from rag_harness.frontends.pytest_plugin.gates import check_clusters
        from rag_harness.runs.gates import Reference

        try:
            gates, _ = self.configured.all, self._run.baseline
            check_clusters(gates, self._session)
            self._session.wanted.check_judge(experiments)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        for gate in gates:
            self._findings.measures.want(gate.suite, gate.measure)
            if isinstance(gate.right, Reference):
                self._findings.measures.want(gate.right.name, gate.measure)

    def judge(self) -> None:
        """Judge after all tests, also if the plugin stopped the run. Not after Ctrl-C."""
        if not (self._used or self._recorder.arrived):
            self._judge_nothing()
            return
        from rag_harness.core.errors import PrerequisiteError

        refused: list[pytest.TestReport] = []
        try:
            self._record.leave()
            refused += self._compare()
            self.verdicts = self._run.verdicts(bool(refused))
            self.unchecked = self._unchecked(refused)
            write_summary_files(self._session.settings, self._findings, self.verdicts, self.unchecked, self.replaced)
        except PrerequisiteError as error:
            refused.append(failure("write results", str(error)))
        except OSError as error:
            refused.append(failure("write results", self._recorder.told(error)))
        self._tell(refused)

    def _unchecked(self, refused: Sequence[pytest.TestReport]) -> dict[str, int]:
        """Count what fails the run though no gate has failed, by what it is: pytest says it, and a report has to."""
        without: Counter[str] = Counter(each.state for each in self.verdicts if self._is_red(each))
        return {**without, **({"comparison": len(refused)} if refused else {})}

    def _judge_nothing(self) -> None:
        """Fail the gates if all tests were asked for and no trial is among them; else count the gates as not judged."""
        if not is_used(self._session.config):
            return
        if has_failed_to_collect(self._session.config):
            self.verdicts = [self._run.reach.not_collected(gate) for gate in self.configured.all]
        elif self._run.reach.is_whole or self._session.settings.not_judged == "fail":
            self.verdicts = [self._run.reach.not_in_run(gate) for gate in self.configured.all]
        else:
            self._unselected = self._run.reach.configured_said
        self._tell(())

    def _tell(self, refused: Sequence[pytest.TestReport]) -> None:
        with never_stopping(self._session.config):
            for report in [*refused, *(self._report(each) for each in self.verdicts)]:
                self._session.config.hook.pytest_runtest_logreport(report=report)
        self._are_told = True

    def _report(self, verdict: Verdict) -> pytest.TestReport:
        outcome = "failed" if self._is_red(verdict) else _OUTCOMES.get(verdict.state, "skipped")
        return _report(verdict.gate.condition, outcome, verdict.line(), verdict.state)

    def _is_red(self, verdict: Verdict) -> bool:
        """Whether a gate without a verdict fails. --rag-undecided and --rag-not-judged decide it."""
        settings = self._session.settings
        if verdict.state == "undecided":
            return settings.undecided == "fail"
        must_be_judged = verdict.state == "not judged" and settings.not_judged == "fail"
        return must_be_judged and not verdict.excuse

    def _compare(self) -> list[pytest.TestReport]:
        """Compare this run with the baseline; return a failure if the two are not comparable."""
        self.comparison, why = self._run.comparison()
        return [_report(f"compare with {self._session.settings.compare}", "failed", why)] if why else []

    def pytest_report_teststatus(self, report: Any) -> Any:
        """Keep gates out of the dots and the percentage, which count tests. A failed gate is shown as a failure."""
        gate = carried_by(report).gate
        if gate is None:
            return None
        # pytest prints the word when a test is over, and again before its line in the short summary.
        word = "FAILED" if self._are_told and report.failed else ""
        return "failed" if report.failed else f"gates {gate}", "", word

    def print_comparison(self, terminal: pytest.TerminalReporter) -> None:
        """Print the comparison with the saved run, if there is one."""
        if self.comparison:
            from rag_harness.tables.comparison_lines import comparison_lines

            write_section(terminal, "rag comparison", comparison_lines(self.comparison, columns()))

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print where the figures come from, then one line for each gate."""
        origins = self._origins_and_renewal()
        if self.verdicts or origins:
            write_section(terminal, "rag gates" if self.verdicts else "rag answers", origins)
            self._write_verdicts(terminal)
            write_lines(terminal, self.notes if self.verdicts else (), yellow=True)

    @cached_property
    def replaced(self) -> Sequence[str]:
        """Which gates others have replaced, a line each."""

        return [*replaced_said(self._session.config, self._session.settings)]

    @property
    def notes(self) -> Sequence[str]:
        """Why fewer gates than were written can stop a release, or on less than it seems, a line each."""

        return [*self.replaced, *unfailing_said(self.configured.all), *self._run.baseline_said()]

    def print_unselected(self, terminal: pytest.TerminalReporter) -> None:
        """Print which gates were not judged in a run of other tests."""
        if self._unselected:
            said = f"rag: not judged, because nothing was selected of {self._unselected}"
            write_lines(terminal, [said], yellow=True)

    @property
    def origins(self) -> Sequence[str]:
        """Where the answers come from that figures and gates are about, and how old they are, a line each."""
        if not self._findings.is_there:
            return []
        from rag_harness.tables.answer_warnings import provenance_lines

        return provenance_lines(self._findings.tables, self._findings.manifest.date)

    def _origins_and_renewal(self) -> list[str]:
        """Say where the answers come from, and how they are renewed."""
        if not self._findings.is_there:
            return []
        from rag_harness.tables.answer_warnings import renewal

        session = self._session
        how = renewal(self._findings.tables, session.access.calls_network, session.settings.overwrite)
        return [*self.origins, *([how] if how else [])]

    def not_judged_said(self) -> Iterator[str]:
        """Yield why gates were not judged, each reason once; those that fail the run are told as failures.

        The line of the gates names the suites that the command did not select.
        """
        from rag_harness.tables.wording import counted

        grouped = [each for each in self.verdicts if self._is_grouped(each)]
        reasons = Counter(verdict.reason for verdict in grouped if verdict.excuse != "suite")
        yield from (f"{counted(n, 'gate')} not judged: {why}" for why, n in reasons.items())

    def _write_verdicts(self, terminal: pytest.TerminalReporter) -> None:
        from rag_harness.runs.gates import together, verdict_lines

        alone = [verdict for verdict in self.verdicts if not self._is_grouped(verdict)]
        for verdict, text in zip(alone, verdict_lines(alone), strict=True):
            colour = "red" if self._is_red(verdict) else _COLOURS.get(verdict.state, "yellow")
            write_lines(terminal, text.split("\n"), **{colour: True})
        for text in together([each for each in self.verdicts if self._is_grouped(each)]):
            write_lines(terminal, text.split("\n"), yellow=True)

    def _is_grouped(self, verdict: Verdict) -> bool:
        """Whether the only thing to say of a gate is its reason. Such gates share a line."""
        return verdict.state == "not judged" and verdict.value is None and not self._is_red(verdict)


def failure(name: str, text: str) -> pytest.TestReport:
    """Return the report of a failure: the run was asked for something that it could not do."""
    return _report(name, "failed", text)


def _report(name: str, outcome: _Outcome, text: str, state: str = "") -> pytest.TestReport:
    """Return a verdict as the report of a test: terminal, JUnit XML and JSON reports then all show it."""
    report = pytest.TestReport(
        # pytest would take brackets for the id of a parameter, and cut them off.
        nodeid=f"{NODE}::{name.replace('[', '(').replace(']', ')')}",
        location=(NODE, None, name),
        keywords={NODE: 1},
        outcome=outcome,
        longrepr={"passed": None, "failed": text, "skipped": (NODE, 0, f"{state}: {text}")}[outcome],
        when="call",
        user_properties=[("rag_gate", terminal_block(text))],
    )
    put_on(report, TrialReport(gate=state))
    if state == "xfailed":
        report.wasxfail = text  # JUnit XML tells an expected failure from a skipped test by this
    make_inert(report)
    return report


# Says which gates of a run others have replaced, and which cannot fail: fewer than were written stop a release.


def replaced_said(config: pytest.Config, settings: Settings) -> Iterator[str]:
    """Yield a line for each gate that a later one has replaced, and one for those that RAG_GATE has replaced."""
    from rag_harness.runs.gates.configuration import gates_set, replaced_gates

    yield from _by_environment(config, settings)
    for left_out, later in replaced_gates(gates_set(settings), settings.k):
        yield f"gate replaced: {left_out}, by {later} (a later one on the same)"


def _by_environment(config: pytest.Config, settings: Settings) -> Iterator[str]:
    """Gates of the command line are added to those of the ini file, so only RAG_GATE takes one of these away."""
    from rag_harness.frontends.pytest_plugin.options import ini
    from rag_harness.tables.wording import counted

    written = ini(config).get("gate", [])
    used = {*settings.gate, *(text for text, _ in settings.gates_elsewhere)}
    if lost := [text for text in written if text not in used]:
        of_all = "the " if len(lost) == len(written) else f"{len(lost):,} of the "
        file = config.inipath.name if config.inipath else "the ini file"
        yield f"RAG_GATE replaces {of_all}{counted(len(written), 'gate')} of {file}"


def unfailing_said(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a line for each gate that no value fails."""
    from rag_harness.runs.gates.configuration import cannot_fail

    yield from (f"cannot fail: {gate.condition}, which every value meets" for gate in gates if cannot_fail(gate))


def not_gated_lines(tables: Mapping[str, SuiteTable], gates: Sequence[GrammarGate]) -> Iterator[str]:
    """Yield what is to be known of such answers, of all experiments in a line each.

    Args:
        tables: tables of the suites of the run.
        gates: the gates that are set.
    """
    found = {name: table for name, table in sorted(tables.items()) if name != GOLDEN}
    yield from _empty(found)
    yield from _broken(found, gates)


def _empty(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """A service that only finds passages has no answer to be missed: nothing is expected of one."""
    from rag_harness.evaluation.measures.expectations import EXPECTATIONS

    for name, table in tables.items():
        rows = table.totals.answered
        if rows and not table.totals.answers and EXPECTATIONS in table.columns:
            yield f"{name}: none of {rows:,} answers has a word, so nothing is measured of answers"


def _broken(tables: Mapping[str, SuiteTable], gates: Sequence[GrammarGate]) -> Iterator[str]:
    """Who has gated what one experiment is expected to do knows of it."""
    from rag_harness.evaluation.measures.expectations import EXPECTATION_PREFIX as PREFIX
    from rag_harness.evaluation.measures.expectations import EXPECTATIONS

    if any(gate.measure.startswith((EXPECTATIONS, PREFIX)) for gate in gates):
        return
    values = {name: table.values(EXPECTATIONS, {}) for name, table in tables.items() if table.has(EXPECTATIONS)}
    broken = {name: count for name, found in values.items() if (count := sum(v < 1 for v in found.values()))}
    if broken:
        said = joined_names([f"{count:,} of {len(values[name]):,} of {name}" for name, count in broken.items()])
        example = f"{next(iter(broken))}: {EXPECTATIONS} >= 0.9"
        yield f"answers that break what their questions expect: {said}. No gate looks at it; set one, e.g. {example}"
