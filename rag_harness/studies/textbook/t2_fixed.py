"""T2, alternative A: windows of 512 tokens with an overlap of 128, regardless of where sections begin."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t2", parts, Design(chunker="fixed", least=0, chunk_size=512, overlap=128))
