"""The run in brief: the last section of the terminal summary, and the only one where nothing more is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_lines, write_section
from rag_harness.shown.terminal import columns

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.attribution import Attribution
    from rag_harness.plugin.gating import GateKeeper
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.recording_report import RecordingReport
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.worker_cost import WorkerCost
    from rag_harness.report.brief import Brief
    from rag_harness.report.brief.writer import Line

_USUAL = 80
"""Columns, where there is no terminal."""


class BriefSection:
    """Prints the section, in the process that prints.

    Args:
        session: state of the run.
        recorder: knows which results came.
        findings: has the tables of the run.
        gates: has the verdicts.
        attribution: has the causes of failures.
        recording: knows which recordings were not used.
        worker_cost: knows what the workers of xdist have cost.
    """

    def __init__(
        self,
        session: RagSession,
        recorder: Recorder,
        findings: RunFindings,
        gates: GateKeeper,
        attribution: Attribution,
        recording: RecordingReport,
        worker_cost: WorkerCost,
    ) -> None:
        self._session, self._recorder, self._findings, self._gates = session, recorder, findings, gates
        self._attribution, self._recording, self._worker_cost = attribution, recording, worker_cost
        self._is_told_in_full = False

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the section; with -q only what a verdict is, and what it is about."""
        has_results = bool(self._recorder.arrived or self._recorder.not_run or self._recorder.skipped)
        # Where nothing could be written there is nothing to read; a failure has said so.
        quiet = terminal.config.get_verbosity() < 0 and not self._session.settings.sections
        self._is_told_in_full = terminal.config.get_verbosity() > 0 or bool(self._session.settings.sections)
        lines = self._lines(quiet) if has_results and self._findings.is_readable else []
        if lines and not quiet:
            write_section(terminal, "rag in brief")
        for text, colour in lines:
            write_lines(terminal, [text], **({colour: True} if colour else {}))
        self._gates.print_unselected(terminal)

    def print_causes(self, terminal: pytest.TerminalReporter) -> None:
        """Print why answers are wrong and what helps, when causes are known; with -q nothing more."""
        from rag_harness.report.brief.terminal_lines import cause_lines

        if terminal.config.get_verbosity() < 0 and not self._session.settings.sections:
            return
        output, has_report = str(self._session.settings.output), bool(self._session.settings.report)
        write_section(terminal, "rag causes in brief")
        for text, colour in cause_lines(self._brief(), output, columns(unknown=_USUAL), has_report=has_report):
            write_lines(terminal, [text], **({colour: True} if colour else {}))

    def _brief(self) -> Brief:
        from rag_harness.report.brief import brief_of
        from rag_harness.report.brief.gates_state import with_worst_why
        from rag_harness.report.summary_file import verdict_json

        verdicts = [verdict_json(each) for each in self._gates.verdicts]
        found, causes = self._findings, self._attribution.causes
        brief = brief_of(found.tables, found.manifest, verdicts, causes, self._gates.unchecked)
        are_due = self._attribution.is_due and not self._attribution.is_explained
        return replace(brief, gates=with_worst_why(brief.gates, self._first_broken), causes_are_due=are_due)

    def _lines(self, quiet: bool) -> Sequence[Line]:
        from rag_harness.report.brief.terminal_lines import brief_lines, quiet_lines
        from rag_harness.report.brief.writer import Line

        brief = self._brief()
        output = str(self._session.settings.output)
        width = columns(unknown=_USUAL)
        if quiet:
            origins = [Line(text, "") for text in self._gates.origins]
            return quiet_lines(brief, output, width, origins=origins, notes=[*self._verdict_notes()])
        is_open = bool(self._gates.configured) and not self._gates.verdicts
        has_report = bool(self._session.settings.report)
        return brief_lines(brief, output, width, has_report=has_report, is_open=is_open, notes=[*self._notes()])

    def _first_broken(self, trial: str, measure: str) -> str:
        from rag_harness.derived.attribution.whole_trial import first_broken  # only where such a gate failed

        return first_broken(self._findings.output, self._findings.manifest, trial, measure)

    def _verdict_notes(self) -> Iterator[Line]:
        """Yield the notes without which a verdict is misread: answers that are missing, gates that judge less."""
        from rag_harness.plugin.golden_section import not_looked_up
        from rag_harness.plugin.remarks import verdict_remarks
        from rag_harness.plugin.tried_again import missing_said
        from rag_harness.report.brief.writer import Line

        missing = missing_said(self._findings.noises, self._session.settings.output)
        yield from (Line(text, "red") for text in missing)
        remarks = [*self._gates.notes, *self._gates.not_judged_said()]
        remarks += not_looked_up(self._session, self._findings)
        remarks += verdict_remarks(self._findings, self._recorder, self._session)
        yield from (Line(text, "yellow") for text in remarks)

    def _notes(self) -> Iterator[Line]:
        """Yield what else has to be known: errors, replaced gates, drafts, rows set aside, unused recordings.

        Nothing else shows answers that did not come after a first one, and calls that were tried again.
        """
        from rag_harness.plugin.golden_section import not_looked_up
        from rag_harness.plugin.not_gated import not_gated_lines
        from rag_harness.plugin.remarks import errors_said, remarks_said
        from rag_harness.plugin.tried_again import first_answers_said, missing_said, retries_said
        from rag_harness.report.brief.writer import Line
        from rag_harness.results.manifest import languages_noted

        noises, output = self._findings.noises, self._session.settings.output

        yield from (Line(text, "") for text in languages_noted(self._findings.manifest.suites.values()))
        yield from (Line(text, "red") for text in errors_said(self._findings, self._session))
        yield from (Line(text, "red") for text in missing_said(noises, output))
        tables, gates = self._findings.tables, self._gates.configured
        # The section of the gates says it, too, where it is printed.
        is_said = self._is_told_in_full
        remarks = [*self._gates.notes, *([] if is_said else self._gates.not_judged_said())]
        remarks += [*first_answers_said(noises, gates), *retries_said(tables)]
        remarks += not_gated_lines(tables, gates)
        remarks += not_looked_up(self._session, self._findings)
        remarks += remarks_said(self._findings, self._recorder, self._session)
        remarks += [*self._recording.unused_lines(), *self._worker_cost.lines()]
        yield from (Line(text, "yellow") for text in remarks)
