"""R2: R1 without the gate."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable
from rag_harness.studies.reliability.engine import Steps


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r2", parts, Design(Steps(gate=False)))
