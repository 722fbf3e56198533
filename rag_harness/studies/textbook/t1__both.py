"""T1 that searches for the question and the selected text together."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t1-both", parts, Design(search_selection=True))
