"""R5: R1 that searches only by meaning."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r5", parts, Design(hybrid=False))
