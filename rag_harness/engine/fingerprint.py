"""Everything that changes a result, in one digest per experiment."""

from __future__ import annotations

from typing import Any

from rag_harness.files.sources import json_digest, source_digest
from rag_harness.protocols import Experiment
from rag_harness.settings import Settings


def fingerprint_parts(
    experiment: Experiment, settings: Settings, queries_digest: str, built_by: str = ""
) -> dict[str, Any]:
    """Return what decides the results of ``experiment``, by name, ready for JSON.

    That is what it declares; the source of its pipeline's module, and of the module ``built_by`` that put it together;
    and what the pipeline says of itself in an attribute ``fingerprint``.
    """
    pipeline = experiment.pipeline
    return {
        "queries": queries_digest,
        "profile": settings.profile,
        "mode": settings.mode,
        "source": [source_digest(module) for module in (type(pipeline).__module__, built_by) if module],
        "own": str(getattr(pipeline, "fingerprint", "")),
        "ingredients": dict(experiment.ingredients),
    }


def fingerprint_of(experiment: Experiment, settings: Settings, queries_digest: str, built_by: str = "") -> str:
    """Return the digest that stands in every row of ``experiment``; see ``fingerprint_parts``."""
    return json_digest(fingerprint_parts(experiment, settings, queries_digest, built_by))
