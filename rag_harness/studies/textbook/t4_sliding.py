"""T4, alternative C: 1,500 to 3,000 tokens, sliding over the page."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t4", parts, Design(chunker="sliding", least=1_500, chunk_size=3_000))
