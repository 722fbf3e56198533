"""R1: every step, retrieval rated by absolute scores."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable

STRICT = "r6"
"""What answers in mode strict where this is served."""


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r1", parts, Design())
