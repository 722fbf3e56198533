"""The sections about trials in the terminal summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.recording_report import RecordingReport
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession


class SummarySection:
    """Prints the sections, in the process that prints. A section without contents is left out."""

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, recording: RecordingReport) -> None:
        self._session, self._recorder, self._record, self._recording = session, recorder, record, recording

    @property
    def _has_trials(self) -> bool:
        # If nothing could be written there is nothing to read. A failure has already said so.
        return bool(self._recorder.trials or self._recorder.not_run) and self._record.is_readable

    def print_trials(self, terminal: pytest.TerminalReporter) -> None:
        """Print the figures of the trials."""
        if not self._has_trials:
            return
        from rag_harness.plugin.terminal import write_summary

        write_summary(terminal, self._recorder, self._record, self._session, self._recording.unused_lines())

    def print_scorecard(self, terminal: pytest.TerminalReporter) -> None:
        """Print the judged scores and the judge's name, if anything was judged."""
        if not self._has_trials:
            return
        suites = self._record.manifest.suites
        if not any(record.authors for record in suites.values()):
            return
        from rag_harness.report.scorecard import scorecard_lines
        from rag_harness.settings.prices import prices_of

        lines = scorecard_lines(self._record.tables, suites, prices_of(self._session.settings))
        write_section(terminal, "rag scorecard", lines)

    def print_pairwise(self, terminal: pytest.TerminalReporter) -> None:
        """Print how the experiments differ, if two or more were judged on the same cases."""
        if not self._has_trials or not self._record.pairwise:
            return
        from rag_harness.report.pairwise_lines import pairwise_lines

        write_section(terminal, "rag pairwise", pairwise_lines(self._record.pairwise))

    def print_slices(self, terminal: pytest.TerminalReporter) -> None:
        """Print which experiment wins on which slice, if that was asked for and two ran on the same data."""
        if not self._has_trials or not self._session.settings.slices:
            return
        from rag_harness.report.standing_lines import standing_lines

        if lines := standing_lines(self._record.standings):
            write_section(terminal, "rag slices", lines)

    def print_abstention(self, terminal: pytest.TerminalReporter) -> None:
        """Print what the stated confidence is worth, if a pipeline states one."""
        if not self._has_trials or not self._record.abstentions:
            return
        from rag_harness.report.abstention import abstention_lines

        write_section(terminal, "rag abstention", abstention_lines(self._record.abstentions))

    def print_noise(self, terminal: pytest.TerminalReporter) -> None:
        """Print where the noise is, if --rag-repeats was given."""
        if not self._has_trials or not self._record.noises:
            return
        from rag_harness.report.noise_lines import noise_lines

        write_section(terminal, "rag noise", noise_lines(self._record.noises))

    def print_own(self, terminal: pytest.TerminalReporter) -> None:
        """Print the sections of other packages, from the entry points ``rag_harness.sections``."""
        if not self._has_trials:
            return
        from rag_harness.report.sections import own_sections

        for name, lines in own_sections(self._record.tables):
            write_section(terminal, f"rag {name}", [part for line in lines for part in line.split("\n")])
