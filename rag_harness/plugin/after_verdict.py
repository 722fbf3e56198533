"""What is worked out when the verdict is printed: why trials failed, and the report that says so.

The exit status is decided before. Ctrl-C ends the work and keeps the verdict.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from rag_harness.derived.cause_work import CAUSES
from rag_harness.plugin.progress import speaks, wants_progress
from rag_harness.plugin.screen import write_lines
from rag_harness.work.reporting import WorkHeard, listening

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_harness.plugin.attribution import Attribution
    from rag_harness.plugin.brief_section import BriefSection
    from rag_harness.plugin.report_file import ReportFile

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
    """Show how many causes are worked out, by their own name: as a bar, or as lines where there is no terminal."""
    work = WorkHeard()

    def hear(what: str, done: int, total: int, unit: str) -> None:
        # What trials wait for meanwhile, such as an index, would take the place of the count.
        if what == CAUSES:
            work.hear(what, done, total, unit)

    with ExitStack() as shown:
        shown.enter_context(listening(hear))
        if wants_progress(config):
            shown.enter_context(_bar(config, work))
        elif speaks(config):
            from rag_harness.plugin.work_lines import WorkLines

            shown.enter_context(WorkLines(config.get_terminal_writer(), work.text, LONGEST_PAUSE))
        yield


@contextmanager
def _bar(config: pytest.Config, work: WorkHeard) -> Generator[None, None, None]:
    from rag_harness.plugin.line_below import LineBelow
    from rag_harness.plugin.progress import bar_line

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
