"""T1, the assistant of the decision record: sections by heading, cosine, boost for selected text, floor."""

from __future__ import annotations

from typing import Any

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.studies.textbook.assembly import DATA, Design, textbook

__all__ = ["DATA", "build"]


def build(parts: RunParts, name: str = "t1", **values: Any) -> Experiment:
    """Return this experiment, or a variant of it: ``values`` are those of its ``Design``."""
    return textbook(name, parts, Design(**values))
