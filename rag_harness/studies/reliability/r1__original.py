"""R1 with the retrieval rating of the first design; docs/results/reliability.md says which questions that stops."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r1-original", parts, Design(original=True))
