"""Evaluate RAG pipelines with pytest: every query a test case, thresholds as gates, runs replayed offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.registry.installed import VERSION

if TYPE_CHECKING:
    from rag_harness.errors import RagHarnessError
    from rag_harness.measures import Measure, RankingMeasure, RowMeasure, Score
    from rag_harness.report.frames import load_results
    from rag_harness.types import (
        Answer,
        Call,
        Case,
        Chunk,
        Decision,
        Document,
        Hit,
        IndexSpec,
        PipelineOutput,
        Query,
        Stage,
        Timings,
        TrialId,
        Usage,
    )

__version__ = VERSION

_TYPES = (
    "Answer",
    "Call",
    "Case",
    "Chunk",
    "Decision",
    "Document",
    "Hit",
    "IndexSpec",
    "PipelineOutput",
    "Query",
    "Stage",
    "Timings",
    "TrialId",
    "Usage",
)
_MEASURES = ("Measure", "RankingMeasure", "RowMeasure", "Score")
_HOME = {
    "RagHarnessError": "errors",
    "load_results": "report.frames",
    **dict.fromkeys(_TYPES, "types"),
    **dict.fromkeys(_MEASURES, "measures"),
}

__all__ = [
    "Answer",
    "Call",
    "Case",
    "Chunk",
    "Decision",
    "Document",
    "Hit",
    "IndexSpec",
    "Measure",
    "PipelineOutput",
    "Query",
    "RagHarnessError",
    "RankingMeasure",
    "RowMeasure",
    "Score",
    "Stage",
    "Timings",
    "TrialId",
    "Usage",
    "__version__",
    "load_results",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use. pytest imports this package in every suite, so its import must be cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rag_harness.{_HOME[name]}"), name)
