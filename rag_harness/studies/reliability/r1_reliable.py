"""R1: every step, with retrieval rated by absolute scores."""

from __future__ import annotations

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable

STRICT = "r6"
"""The experiment that answers in mode strict when this one is served."""


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return reliable("r1", parts, Design())
