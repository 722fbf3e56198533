"""Evaluate RAG pipelines with pytest: every query a test case, thresholds as gates, runs replayed offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_harness.errors import RagHarnessError
    from rag_harness.types import Answer, Case, Chunk, Document, Hit, PipelineOutput, Query, Score, Timings, Usage

__version__ = "0.1.0"

_HOME = {
    "RagHarnessError": "errors",
    **dict.fromkeys(
        ("Answer", "Case", "Chunk", "Document", "Hit", "PipelineOutput", "Query", "Score", "Timings", "Usage"), "types"
    ),
}

__all__ = [
    "Answer",
    "Case",
    "Chunk",
    "Document",
    "Hit",
    "PipelineOutput",
    "Query",
    "RagHarnessError",
    "Score",
    "Timings",
    "Usage",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: pytest imports this package in every suite, so it must cost nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rag_harness.{_HOME[name]}"), name)
