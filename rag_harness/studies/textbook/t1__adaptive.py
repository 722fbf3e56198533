"""T1 with adaptive top-k: 3 to 8 sources, as many as have a score near the first one's."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t1-adaptive", parts, Design(adaptive=True))
