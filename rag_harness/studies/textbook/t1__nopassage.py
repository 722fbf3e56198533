"""T1 without the passage: only the question finds candidates, whatever is selected."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t1-nopassage", parts, Design(passage=False))
