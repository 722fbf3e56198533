"""C1: a turn becomes a question that stands alone, which is searched and answered as E3 does."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.conversations.conversing import DATA, conversing
from rag_harness.studies.conversations.rewriting import rewriting

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1", parts, rewriting)
