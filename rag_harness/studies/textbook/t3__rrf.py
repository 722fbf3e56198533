"""T3 with reciprocal rank fusion in place of weights."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, fused, textbook
from rag_harness.studies.textbook.fusion import by_rank

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t3-rrf", parts, Design(), fused(by_rank))
