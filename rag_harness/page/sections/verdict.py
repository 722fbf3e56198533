"""The gates, first."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.content import Cell, Section, Table, Tone, words
from rag_harness.page.run import Run

_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "inconclusive": "unsure"}


def verdict(runs: Sequence[Run]) -> Section:
    """Return the gates of the first run."""
    rows = [[Cell(gate["state"], _TONES.get(gate["state"], "mute")), *words(gate["gate"])] for gate in runs[0].gates]
    return Section("verdict", "Verdict", [Table("gates", ["state", "gate"], rows)])
