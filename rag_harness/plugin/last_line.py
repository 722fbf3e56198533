"""The plugin's last line: how many questions were answered, and how many of the answers are wrong.

pytest's own last line counts tests. A test passes where an answer came, unless it asks for a right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_lines

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings


def print_last(recorder: Recorder, findings: RunFindings, terminal: pytest.TerminalReporter) -> None:
    """Print the line, where an experiment of this run answered. With -q the run in brief is as short, and says it."""
    from rag_harness.report.wrong import all_with_wrong, count_wrong
    from rag_harness.types import GOLDEN

    if terminal.config.get_verbosity() < 0 or not recorder.arrived or not findings.is_readable:
        return
    asked = {name: table for name, table in findings.tables.items() if name != GOLDEN and table.totals.answered}
    mine = all_with_wrong({name: table for name, table in asked.items() if not findings.manifest.suites[name].made})
    if mine:
        answered = sum(table.totals.answered for table in mine.values())
        said = count_wrong(mine)
        write_lines(terminal, [f"rag: {answered:,} answered, {said or 'none checked'}"])
