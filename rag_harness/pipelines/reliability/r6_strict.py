"""R6: R1 with every threshold raised."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.reliability.assembly import Design, reliable
from rag_harness.protocols import Experiment


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r6", parts, Design(mode="strict"))
