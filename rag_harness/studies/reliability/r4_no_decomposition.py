"""R4: R1 that searches for the whole question, without decomposition."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable
from rag_harness.studies.reliability.engine import Steps


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r4", parts, Design(Steps(decompose=False)))
