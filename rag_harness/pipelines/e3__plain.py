"""E3 over the same chunks with the marks of Markdown taken off: does structured Markdown help?"""

from __future__ import annotations

from dataclasses import replace

from rag_harness.pipelines.e3_filtered_rag import filtered
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.retrieval.retrieval import spec_of


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return filtered("e3-plain", parts, spec=replace(spec_of(parts.settings), chunker="plain"), prompted_as="e3")
