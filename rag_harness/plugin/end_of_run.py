"""The end of a run, from top to bottom: the steps after the last test, then the sections of the terminal summary.

To add something, write a function, and a line in ``STEPS`` or in ``SECTIONS``. A section of another package
comes by the entry point ``rag_harness.sections``. Causes are planned as a step, and worked out (``after_verdict``) when
all of it is printed and the exit status is decided: they take longer than the answers, and no verdict waits for them.

pytest does something in the middle of each list: it ends its row of dots, and it prints its short summary. So two hooks
go through each list. The inner one comes before pytest, the outer one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from rag_harness.plugin.after_verdict import AfterVerdict
from rag_harness.plugin.attribution import Attribution
from rag_harness.plugin.brief_section import BriefSection
from rag_harness.plugin.earlier_turns import EarlierTurns
from rag_harness.plugin.equal_failures import printed_once
from rag_harness.plugin.golden_section import GoldenSection
from rag_harness.plugin.last_line import print_last
from rag_harness.plugin.metamorphic import Metamorphic
from rag_harness.plugin.otlp_sending import OtlpSending
from rag_harness.plugin.report_file import ReportFile
from rag_harness.plugin.screen import count_rightly
from rag_harness.plugin.sections_shown import SectionsShown
from rag_harness.plugin.snapshots_section import SnapshotsSection
from rag_harness.plugin.summary_section import SummarySection
from rag_harness.plugin.tuning import Tuning
from rag_harness.plugin.worker_cost import WorkerCost

if TYPE_CHECKING:
    from rag_harness.plugin.affected import Affected
    from rag_harness.plugin.gating import GateKeeper
    from rag_harness.plugin.progress import Progress
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.recording_report import RecordingReport
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner


@dataclass(frozen=True)
class RunEnd:
    """The objects that steps and sections use, in the process that writes.

    Attributes:
        session: state of the run.
        recorder: knows which results came.
        findings: has the tables of the run, read from its files.
        trials: can run trials again.
        gates: judges the gates.
        recording: knows which recordings were not used.
        affected: knows what --rag-affected-by has left.
    """

    session: RagSession
    recorder: Recorder
    findings: RunFindings
    trials: TrialRunner
    gates: GateKeeper
    recording: RecordingReport
    affected: Affected

    @cached_property
    def shown(self) -> SectionsShown:
        """Knows which sections are printed."""
        usual = {section.name: section.is_usual for section in SECTIONS if section is not SHORT_SUMMARY}
        return SectionsShown(self.session, usual, BRIEF.name)

    @cached_property
    def earlier_turns(self) -> EarlierTurns:
        """Judges answers by contexts of earlier turns."""
        return EarlierTurns(self.session, self.recorder, self.trials)

    @cached_property
    def worker_cost(self) -> WorkerCost:
        """Knows what the workers of xdist have cost."""
        return WorkerCost()

    @cached_property
    def metamorphic(self) -> Metamorphic:
        """Checks relations between a query and its variants."""
        return Metamorphic(self.session, self.recorder, self.findings, self.trials)

    @cached_property
    def attribution(self) -> Attribution:
        """Finds out why trials failed."""
        return Attribution(self.session, self.recorder, self.findings, self.trials)

    @cached_property
    def summary(self) -> SummarySection:
        """Prints what trials came to."""
        return SummarySection(self.session, self.recorder, self.findings, self.recording)

    @cached_property
    def golden(self) -> GoldenSection:
        """Prints what the golden suite came to."""
        return GoldenSection(self.session, self.recorder, self.findings)

    @cached_property
    def brief(self) -> BriefSection:
        """Prints the run in brief."""
        return BriefSection(
            self.session, self.recorder, self.findings, self.gates, self.attribution, self.recording, self.worker_cost
        )

    @cached_property
    def snapshots(self) -> SnapshotsSection:
        """Says what became of the snapshots of answers."""
        return SnapshotsSection(self.session)

    @cached_property
    def report(self) -> ReportFile:
        """Writes the report."""
        return ReportFile(self.session, self.findings)

    def write_report(self) -> None:
        """Write the report now, or let it wait for the causes that it shows."""
        if not self.attribution.is_due:
            self.report.write()

    @cached_property
    def tuning(self) -> Tuning:
        """Lets configurations race."""
        return Tuning(self.session, self.trials)

    @cached_property
    def otlp(self) -> OtlpSending:
        """Sends trials and scores to a backend of OpenTelemetry."""
        return OtlpSending(self.session, self.findings)


@dataclass(frozen=True)
class Step:
    """A piece of work that is done once, after the last test. A run that only collects does no steps.

    Attributes:
        name: its name, for people and tests.
        does: what it does.
        work: does it.
        after_errors: whether it is done even if tests or an earlier step have raised. No step is done after Ctrl-C,
            or in a run that cannot be as it was asked for.
    """

    name: str
    does: str
    work: Callable[[RunEnd], None]
    after_errors: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the terminal summary, printed if it has contents.

    Attributes:
        name: its name, for people and tests.
        says: what it says.
        print: prints it.
        is_usual: whether it is printed without --rag-sections and -v, as what an option of its own asks for is.
    """

    name: str
    says: str
    print: Callable[[RunEnd, pytest.TerminalReporter], None]
    is_usual: bool = False


def _by_pytest(*_: object) -> None:
    """Do nothing: pytest does this itself, and the list only shows when."""


def _print_answered(run: RunEnd, terminal: pytest.TerminalReporter) -> None:
    print_last(run.recorder, run.findings, terminal)


ROW_OF_DOTS = Step("row of dots", "pytest ends it with 100%", _by_pytest)
STEPS: tuple[Step, ...] = (
    Step(
        "earlier turns", "judges by contexts of earlier turns; before run.json", lambda run: run.earlier_turns.judge()
    ),
    Step("metamorphic", "checks relations; gates may be about them", lambda run: run.metamorphic.check()),
    Step("gates", "leaves run.json, judges gates, leaves summary.json", lambda run: run.gates.judge(), True),
    ROW_OF_DOTS,
    Step("causes", "plans to say why trials failed, when the verdict is printed", lambda run: run.attribution.plan()),
    Step("tune", "lets configurations race, which the report shows", lambda run: run.tuning.race()),
    Step("report", "writes a report, unless causes are still to come", lambda run: run.write_report(), True),
    Step("otlp", "sends trials and scores to a backend of OpenTelemetry", lambda run: run.otlp.send(), True),
)
"""The steps after the last test, in their order."""

SHORT_SUMMARY = Section("short summary", "pytest says which tests failed", _by_pytest)
BRIEF = Section("brief", "what to know first", lambda run, terminal: run.brief.print(terminal), True)
SECTIONS: tuple[Section, ...] = (
    Section(
        "carried",
        "why these cannot be told",
        lambda run, terminal: run.earlier_turns.print(terminal),
        True,
    ),
    Section("metamorphic", "which relations broke", lambda run, terminal: run.metamorphic.print(terminal), True),
    Section("trials", "the figures of experiments", lambda run, terminal: run.summary.print_trials(terminal)),
    Section("scorecard", "what judges said", lambda run, terminal: run.summary.print_scorecard(terminal)),
    Section("pairwise", "how experiments differ", lambda run, terminal: run.summary.print_pairwise(terminal)),
    Section("slices", "which experiment wins where", lambda run, terminal: run.summary.print_slices(terminal)),
    Section("abstention", "what confidence is worth", lambda run, terminal: run.summary.print_abstention(terminal)),
    Section("noise", "where the noise is", lambda run, terminal: run.summary.print_noise(terminal), True),
    Section("own", "sections of other packages", lambda run, terminal: run.summary.print_own(terminal), True),
    Section("snapshots", "answers beside those kept", lambda run, terminal: run.snapshots.print(terminal), True),
    Section("causes", "why trials failed", lambda run, terminal: run.attribution.print(terminal)),
    Section("affected", "what a change affects, under xdist", lambda run, terminal: run.affected.print(terminal), True),
    SHORT_SUMMARY,
    Section("golden", "the figures of the golden suite", lambda run, terminal: run.golden.print(terminal), True),
    Section(
        "comparison", "this run beside a saved one", lambda run, terminal: run.gates.print_comparison(terminal), True
    ),
    Section("gates", "a line a gate", lambda run, terminal: run.gates.print(terminal)),
    BRIEF,
    Section("tune", "which configuration is better", lambda run, terminal: run.tuning.print(terminal), True),
    Section("report", "where the report is", lambda run, terminal: run.report.print(terminal), True),
    Section("otlp", "what was sent, and what was not", lambda run, terminal: run.otlp.print(terminal), True),
    Section("answered", "how many answers are wrong", _print_answered, True),
)
"""The sections of the terminal summary, in their order."""


class InnerEnd:
    """Runs the steps and sections that come before pytest's own."""

    def __init__(self, run: RunEnd) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Do the steps when the tests are done."""
        return (yield from _then(STEPS[: STEPS.index(ROW_OF_DOTS)], self._run))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the sections."""
        _print(SECTIONS[: SECTIONS.index(SHORT_SUMMARY)], self._run, terminalreporter)


class OuterEnd:
    """Runs the steps and sections that come after pytest's own.

    Args:
        run: is given to steps and sections.
        progress: shows how tests and steps go on.
    """

    def __init__(self, run: RunEnd, progress: Progress) -> None:
        self._run, self._progress = run, progress

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Show the progress of tests and steps, and do the last steps."""
        # The user may have switched it off: -p no:rag_harness.progress.
        is_shown = session.config.pluginmanager.is_registered(self._progress)
        with self._progress.shown() if is_shown else nullcontext():
            return (yield from _then(STEPS[STEPS.index(ROW_OF_DOTS) + 1 :], self._run))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Say why trials failed, when everything else is printed and the exit status is decided.

        A race is work enough: a run that only tunes has not failed to find tests.
        """
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._run.tuning.has_raced:
            session.exitstatus = pytest.ExitCode.OK
        result = yield
        if self._run.attribution.is_due and session.exitstatus != pytest.ExitCode.INTERRUPTED:
            run = self._run
            try:
                AfterVerdict(session, run.attribution, run.brief, run.report, run.shown.is_shown).work()
            finally:
                run.trials.equipment.stop()  # no more calls are made
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Print the last sections."""
        with printed_once(terminalreporter):
            yield
        _print(SECTIONS[SECTIONS.index(SHORT_SUMMARY) + 1 :], self._run, terminalreporter)
        count_rightly(terminalreporter)


def _print(sections: Sequence[Section], run: RunEnd, terminal: pytest.TerminalReporter) -> None:
    """Print those of the sections that are shown."""
    for section in sections:
        if run.shown.is_shown(section.name):
            section.print(run, terminal)


def _then(steps: Sequence[Step], run: RunEnd) -> Generator[None, object, object]:
    """Let everything before ``steps`` be done, then do them in their order."""
    if not steps or run.session.config.option.collectonly:
        return (yield)
    *earlier, step = steps
    try:
        result = yield from _then(earlier, run)
    except (pytest.UsageError, KeyboardInterrupt):
        raise
    except BaseException:
        if step.after_errors:
            step.work(run)
        raise
    step.work(run)
    return result
