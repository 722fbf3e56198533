"""The sections about trials in the terminal summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.recording_report import RecordingReport
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession


class SummarySection:
    """Prints the sections, in the process that prints. A section without contents is left out."""

    def __init__(
        self, session: RagSession, recorder: Recorder, findings: RunFindings, recording: RecordingReport
    ) -> None:
        self._session, self._recorder, self._findings, self._recording = session, recorder, findings, recording

    @property
    def _has_trials(self) -> bool:
        # Where nothing could be written there is nothing to read; a failure has said so.
        return bool(self._recorder.trials or self._recorder.not_run) and self._findings.is_readable

    def print_trials(self, terminal: pytest.TerminalReporter) -> None:
        """Print the figures of the trials."""
        if not self._has_trials:
            return
        from rag_harness.plugin.terminal import write_summary

        write_summary(terminal, self._recorder, self._findings, self._session, self._recording.unused_lines())

    def print_scorecard(self, terminal: pytest.TerminalReporter) -> None:
        """Print the judged scores and the judge's name, if anything was judged."""
        if not self._has_trials:
            return
        suites = self._findings.manifest.suites
        if not any(record.authors for record in suites.values()):
            return
        from rag_harness.report.scorecard import scorecard_lines
        from rag_harness.settings.prices import prices_of

        lines = scorecard_lines(self._findings.tables, suites, prices_of(self._session.settings))
        if self._findings.panels:
            from rag_harness.report.panels import panel_lines

            lines += panel_lines(self._findings.panels)
        write_section(terminal, "rag scorecard", lines)

    def print_pairwise(self, terminal: pytest.TerminalReporter) -> None:
        """Print how the experiments differ, where two or more were judged on the same cases."""
        if not self._has_trials or not self._findings.pairwise:
            return
        from rag_harness.report.pairwise_lines import pairwise_lines

        write_section(terminal, "rag pairwise", pairwise_lines(self._findings.pairwise))

    def print_slices(self, terminal: pytest.TerminalReporter) -> None:
        """Print which experiment wins on which slice, if that was asked for and two ran on the same data."""
        if not self._has_trials or not self._session.settings.slices:
            return
        from rag_harness.report.standing_lines import standing_lines

        if lines := standing_lines(self._findings.standings):
            write_section(terminal, "rag slices", lines)

    def print_abstention(self, terminal: pytest.TerminalReporter) -> None:
        """Print what confidence is worth, where a pipeline states one."""
        if not self._has_trials or not self._findings.abstentions:
            return
        from rag_harness.report.abstention import abstention_lines

        write_section(terminal, "rag abstention", abstention_lines(self._findings.abstentions))

    def print_noise(self, terminal: pytest.TerminalReporter) -> None:
        """Print where the noise is, where queries were to be answered again."""
        if not self._has_trials or not self._findings.noises:
            return
        from rag_harness.report.noise_lines import noise_lines

        write_section(terminal, "rag noise", noise_lines(self._findings.noises))

    def print_own(self, terminal: pytest.TerminalReporter) -> None:
        """Print the sections of other packages, from the entry points ``rag_harness.sections``."""
        if not self._has_trials:
            return
        from rag_harness.report.sections import own_sections

        for name, lines in own_sections(self._findings.tables):
            write_section(terminal, f"rag {name}", [part for line in lines for part in line.split("\n")])
