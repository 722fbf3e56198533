"""E3 over the same chunks without their Markdown marks: does structured Markdown help?"""

from __future__ import annotations

from dataclasses import replace

from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.retrieval.retrieval import spec_of
from rag_harness.studies.retail.e3_filtered_rag import filtered


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    spec = replace(spec_of(parts.settings), chunker="plain")
    built = filtered("e3-plain", parts, spec=spec, prompted_as="e3")
    # The causes of its failures are taken from rows and gold. Running failed trials again would need most of the
    # recordings, and E3's causes already show as much.
    return replace(built, answer_from=None)
