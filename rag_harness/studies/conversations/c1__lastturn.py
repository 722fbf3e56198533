"""C1 that searches for the words of the turn alone."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.conversations.conversing import DATA, conversing
from rag_harness.studies.conversations.joined_turns import LastTurn

__all__ = ["DATA", "build"]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1-lastturn", parts, lambda _parts, _retrieval: LastTurn())
