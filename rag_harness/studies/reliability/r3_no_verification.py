"""R3: R1 without verification."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable
from rag_harness.studies.reliability.engine import Steps


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r3", parts, Design(Steps(verify=False)))
