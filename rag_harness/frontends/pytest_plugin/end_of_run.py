"""The end of a run, from top to bottom: the steps after the last test, then the terminal summary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from rag_harness.core.progress import ProgressText, listening
from rag_harness.frontends.pytest_plugin.derived_runs import (
    Attribution,
    EarlierTurns,
    Metamorphic,
    Tuning,
    defer_errors,
)
from rag_harness.frontends.pytest_plugin.failure_messages import printed_once
from rag_harness.frontends.pytest_plugin.progress import WorkerCost, speaks, wants_progress
from rag_harness.frontends.pytest_plugin.sections import (
    BriefSection,
    GoldenSection,
    SectionsShown,
    SummarySection,
    print_last,
)
from rag_harness.frontends.pytest_plugin.snapshots import SnapshotsSection
from rag_harness.frontends.pytest_plugin.terminal import count_rightly, usage_error, write_lines
from rag_harness.frontends.pytest_plugin.trial_report import failure_of

if TYPE_CHECKING:
    from rag_harness.core.concurrency import Lazy
    from rag_harness.core.settings import Settings
    from rag_harness.frontends.pytest_plugin.affected import Affected
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.gate_reports import GateKeeper
    from rag_harness.frontends.pytest_plugin.progress import Progress
    from rag_harness.frontends.pytest_plugin.readiness import RecordingReport
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner
    from rag_harness.page.exports.otlp import Sent, WordsOfTrial


# What is worked out when the verdict is printed: why trials failed, and the report that says so.
#
# The exit status is decided before. Ctrl-C ends the work and keeps the verdict.

LONGEST_PAUSE = 10.0
"""Seconds between two lines where there is no terminal."""


class AfterVerdict:
    """Works out causes, prints them, and writes the report.

    Args:
        session: gets the exit status of a run that cannot write its report.
        attribution: works out causes.
        brief: prints them in brief.
        report: writes the report.
        is_shown: whether a section is printed.
    """

    def __init__(
        self,
        session: pytest.Session,
        attribution: Attribution,
        brief: BriefSection,
        report: ReportFile,
        is_shown: Callable[[str], bool],
    ) -> None:
        self._session, self._attribution, self._brief, self._report = session, attribution, brief, report
        self._is_shown = is_shown
        self._terminal: pytest.TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")

    def work(self) -> None:
        """Do it all."""
        try:
            with causes_shown(self._session.config):
                self._attribution.explain()
        except KeyboardInterrupt:
            self._say("rag: stopped: no causes were worked out. The verdicts above hold; rag-harness explain says why.")
        self._print()
        self._write_report()

    def _print(self) -> None:
        if self._terminal is None or not self._attribution.is_explained:
            return
        if self._is_shown("causes"):
            self._attribution.print(self._terminal)
        if self._is_shown("brief"):
            self._brief.print_causes(self._terminal)

    def _write_report(self) -> None:
        if why := self._report.write_late():
            self._say(f"rag: the report could not be written: {why}", red=True)
            if self._session.exitstatus == pytest.ExitCode.OK:
                self._session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._terminal is not None and self._is_shown("report"):
            self._report.print(self._terminal)

    def _say(self, text: str, **markup: bool) -> None:
        if self._terminal is not None:
            write_lines(self._terminal, [text], **markup)


@contextmanager
def causes_shown(config: pytest.Config) -> Iterator[None]:
    """Show the number of determined causes, under its own label: as a bar, or as lines without a terminal."""
    from rag_harness.diagnosis.failures import CAUSES

    work = ProgressText()

    def hear(what: str, done: int, total: int, unit: str) -> None:
        # What trials wait for meanwhile, such as an index, would take the place of the count.
        if what == CAUSES:
            work.hear(what, done, total, unit)

    with ExitStack() as shown:
        shown.enter_context(listening(hear))
        if wants_progress(config):
            shown.enter_context(_bar(config, work))
        elif speaks(config):
            from rag_harness.frontends.pytest_plugin.progress import WorkLines

            shown.enter_context(WorkLines(config.get_terminal_writer(), work.text, LONGEST_PAUSE))
        yield


@contextmanager
def _bar(config: pytest.Config, work: ProgressText) -> Generator[None, None, None]:
    from rag_harness.frontends.pytest_plugin.progress import StatusLine as LineBelow
    from rag_harness.frontends.pytest_plugin.progress import bar_line

    writer = config.get_terminal_writer()

    def text(columns: int) -> str:
        return bar_line(columns, work.share, work.text(), has_colours=writer.hasmarkup)

    line = writer._file = LineBelow(writer._file, writer.width_of_current_line, text)
    line.begin()
    try:
        yield
    finally:
        line.end()
        writer._file = line.file


class ReportFile:
    """Writes the file after gates and causes, and prints its place."""

    def __init__(self, config: pytest.Config, settings: Lazy[Settings], findings: RunFindings) -> None:
        self._config, self._settings, self._findings = config, settings, findings
        self._said = ""

    def write(self) -> None:
        """Write when all that reads the results has run, also where one of ours stopped the run; not after Ctrl-C."""
        from rag_harness.frontends.pytest_plugin.gate_reports import failure

        if why := self.write_late():
            # The user waits for this file. A run that could not write it must not look like one that did.
            self._config.hook.pytest_runtest_logreport(report=failure("write report", why))

    def write_late(self) -> str:
        """Write the report, and return why it could not be written; empty where it was, or none is wanted."""
        settings = self._settings.get()
        if not settings.report or not self._findings.is_there:
            return ""
        from rag_harness.page import format_of
        from rag_harness.page.report import size_said, write_report

        file, tables = settings.path(settings.report), self._findings.tables
        _, why = defer_errors(lambda: write_report([self._findings.output], file, format_of(file), tables=tables))
        if not why:
            self._said = f"report: {file} ({size_said(file)})"
        return why

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Say where the report is, below everything else."""
        if self._said:
            write_lines(terminal, [self._said])


class OtlpSending:
    """Sends once all is judged and written: a backend that is down costs a line, and no trial.

    Args:
        session: state of the run.
        findings: has the tables of the run.
    """

    def __init__(self, session: RagSession, findings: RunFindings) -> None:
        self._session, self._findings = session, findings
        self._said: list[str] = []
        self._missing = ""

    def collection_done(self, selected: Collected) -> None:
        """Check the address before anything is asked.

        Raises:
            pytest.UsageError: it is none of http, or it holds a key.
        """
        if not self._session.settings.otlp or not selected.every:
            return
        from rag_harness.core.errors import SettingsError
        from rag_harness.page.exports.otlp import OtlpBackend

        try:
            OtlpBackend(self._session.settings.otlp)
        except SettingsError as error:
            raise usage_error(f"--rag-otlp: {error}") from None

    def send(self) -> None:
        """Send what has come, also where one of ours stopped the run; not after Ctrl-C."""
        if not self._session.settings.otlp or not self._findings.is_there:
            return
        sent, why = defer_errors(self._send)
        if sent is not None and sent.trials:
            self._said.insert(0, f"otlp: {sent.said} sent to {self._session.settings.otlp}")
        what = sent.missing if sent is not None else "trials were not sent"
        if what:
            again = f"rag-harness results export {self._findings.output} --to otlp --url {self._session.settings.otlp}"
            self._missing = f"otlp: WARNING: {what}: {why or (sent.why if sent else '')} Send all of them: {again}"

    def _send(self) -> Sent:
        from rag_harness.page.exports.otlp import OtlpBackend, send_trials

        findings, backend = self._findings, OtlpBackend(self._session.settings.otlp)
        return send_trials(findings.output, findings.manifest, findings.tables, backend, self._words())

    def _words(self) -> WordsOfTrial:
        """Return the words that may be sent: cleaned, and none where only xdist's workers know ``rag_scrub``."""
        from rag_harness.models.recording.scrubbing import Cleaner, secrets_of
        from rag_harness.page.exports.otlp import NO_WORDS, WordsOfTrial, words_are_asked_for

        if not words_are_asked_for():
            return WordsOfTrial()
        if not self._session.knows_scrub:
            self._said.append(f"otlp: {NO_WORDS}")
            return WordsOfTrial()
        return WordsOfTrial(Cleaner(secrets_of(self._session.settings), self._session.scrub).value)

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Say what was sent, and what was not."""
        if self._said:
            write_lines(terminal, self._said)
        if self._missing:
            write_lines(terminal, [self._missing], yellow=True)


# The end of a run, from top to bottom: the steps after the last test, then the sections of the terminal summary.
#
# To add something, write a function, and a line in ``STEPS`` or in ``SECTIONS``. A section of another package comes by
# the entry point ``rag_harness.sections``. Causes are planned as a step, and worked out (``AfterVerdict``) when all of
# it is printed and the exit status is decided: they take longer than the answers, and no verdict waits for them.
#
# pytest does something in the middle of each list: it ends its row of dots, and it prints its short summary. So two
# hooks go through each list. The inner one comes before pytest, the outer one after it.


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
        return SectionsShown(self.session.config, self.session.lazy_settings, usual, BRIEF.name)

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
        """Reports the changes of the snapshots of answers."""
        return SnapshotsSection(self.session)

    @cached_property
    def report(self) -> ReportFile:
        """Writes the report."""
        return ReportFile(self.session.config, self.session.lazy_settings, self.findings)

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
        with printed_once(terminalreporter, failure_of):
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
