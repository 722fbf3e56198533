"""T1 with the floor of the decision record, 0.7 for any embedding model."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t1-floor07", parts, Design(floor="record"))
