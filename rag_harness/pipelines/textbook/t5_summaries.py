"""T5, alternative D: summaries of the sections are searched first, and their sections come back whole."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.textbook.assembly import DATA, Design, summaries_first, textbook
from rag_harness.protocols import Experiment

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t5", parts, Design(), summaries_first)
