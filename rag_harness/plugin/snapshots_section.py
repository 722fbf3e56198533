"""Prints which answers are not as in their snapshots, and which snapshots were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.snapshots import KeptAnswers

_HOW = "pytest --snapshot-update keeps the answers of now; read the difference before you commit it"
_NAMED = 3
"""How many trials a line names."""


class SnapshotsSection:
    """A section of the terminal summary.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print it, where there is something to know or to do."""
        snapshots = self._session.snapshots
        lines = [line for experiment, mine in sorted(snapshots.of.items()) for line in self._lines(experiment, mine)]
        is_update_called_for = not snapshots.keeps and any(
            each.changed or each.missing for each in snapshots.of.values()
        )
        if lines:
            write_section(terminal, "rag snapshots", [*lines, *([_HOW] if is_update_called_for else [])])

    def _lines(self, experiment: str, mine: KeptAnswers) -> Iterator[str]:
        from rag_harness.gates.belonging import shown_place

        session = self._session
        file = shown_place(session.settings, mine.file)
        if written := _written(mine):
            yield f"{file}: {written}"
        if mine.changed:
            yield f"{experiment}: {_answers(mine.changed, 'not as kept')}"
        if mine.missing:
            why = "empty or very long, and not kept" if session.snapshots.keeps else "without a snapshot yet"
            yield f"{experiment}: {_answers(mine.missing, why)}"
        if session.is_whole and (unused := session.snapshots.unused(experiment)):
            yield f"{file}: {len(unused)} that no question demands: {_named(unused)}"


def _written(mine: KeptAnswers) -> str:
    counts = {"new": len(mine.new) - mine.replaced, "changed": mine.replaced, "taken out": len(mine.removed)}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _answers(trials: Sequence[str], how: str) -> str:
    return f"{len(trials):,} answer{'s' * (len(trials) > 1)} {how}: {_named(trials)}"


def _named(trials: Sequence[str]) -> str:
    more = f" and {len(trials) - _NAMED} more" if len(trials) > _NAMED else ""
    return f"{', '.join(trials[:_NAMED])}{more}"
