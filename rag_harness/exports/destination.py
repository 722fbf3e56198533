"""Where scores are exported to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.exports.scored_run import ScoredRun


@dataclass(frozen=True, slots=True)
class Destination:
    """Where scores go.

    Attributes:
        output: the output folder of the run.
        place: file or folder, for targets that are files.
        url: the address of a server; empty: as the tool's own client finds it.
        project: the name under which the tool keeps them.
    """

    output: Path
    place: Path
    url: str = ""
    project: str = "rag-harness"


Target = Callable[[ScoredRun, Destination], Sequence[str]]
"""Exports a run, and returns what to say of it. What is there already is left as it is."""
