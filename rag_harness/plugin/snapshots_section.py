"""Prints which answers are not as in their snapshots, and which snapshots were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.session import RagSession

_HOW = "pytest --snapshot-update keeps the answers of now; read the difference before you commit it"


class SnapshotsSection:
    """A section of the terminal summary.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print it, where there is something to know or to do."""
        session = self._session
        lines = list(session.snapshots.lines(session.is_whole))
        if lines:
            hint = [_HOW] if session.snapshots.is_update_called_for else []
            write_section(terminal, "rag snapshots", [*lines, *hint])
