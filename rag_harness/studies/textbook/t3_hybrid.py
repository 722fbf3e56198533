"""T3, alternative B: 0.7 of the cosine and 0.3 of BM25."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, fused, textbook
from rag_harness.studies.textbook.fusion import weighted

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t3", parts, Design(), fused(weighted))
