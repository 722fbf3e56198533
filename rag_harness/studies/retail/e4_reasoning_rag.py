"""E4: as E3, and the model reasons step by step before it answers."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.retail.e3_filtered_rag import filtered


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return filtered("e4", parts, reasoning=True)
