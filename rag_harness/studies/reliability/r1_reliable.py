"""R1: every step, with retrieval rated by absolute scores."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.reliability.assembly import Design, reliable
from rag_harness.studies.reliability.engine import Steps

STRICT = "r6"
"""The experiment that answers in mode strict when this one is served."""


def build(parts: RunParts, name: str = "r1", **values: Any) -> Experiment:
    """Return this experiment, or a variant of it: ``values`` are those of its ``Design`` and of its ``Steps``."""
    steps = {each.name: values.pop(each.name) for each in fields(Steps) if each.name in values}
    return reliable(name, parts, Design(Steps(**steps), **values))
