"""``--rag-report``: writes the report of the run as a file, after everything else is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.screen import write_lines

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession


class ReportFile:
    """Writes the file after gates and causes, and prints its place."""

    def __init__(self, session: RagSession, findings: RunFindings) -> None:
        self._session, self._findings = session, findings
        self._said = ""

    @property
    def file(self) -> Path:
        """Where to write."""
        return self._session.settings.path(self._session.settings.report)

    def write(self) -> None:
        """Write when all that reads the results has run, also where one of ours stopped the run; not after Ctrl-C."""
        from rag_harness.plugin.gating import failure

        if why := self.write_late():
            # The user waits for this file. A run that could not write it must not look like one that did.
            self._session.config.hook.pytest_runtest_logreport(report=failure("write report", why))

    def write_late(self) -> str:
        """Write the report, and return why it could not be written; empty where it was, or none is wanted."""
        if not self._session.settings.report or not self._findings.is_there:
            return ""
        from rag_harness.page.formats import format_of
        from rag_harness.page.report_files import size_said, write_report

        file, tables = self.file, self._findings.tables
        _, why = tried(lambda: write_report([self._session.output], file, format_of(file), tables=tables))
        if not why:
            self._said = f"report: {file} ({size_said(file)})"
        return why

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Say where the report is, below everything else."""
        if self._said:
            write_lines(terminal, [self._said])
