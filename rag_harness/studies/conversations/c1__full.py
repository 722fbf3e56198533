"""C1 that searches for everything that was said."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.conversations.conversing import DATA, conversing
from rag_harness.studies.conversations.joined_turns import JoinedTurns

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1-full", parts, lambda _parts, retrieval: JoinedTurns(retrieval.embedder.max_tokens))
