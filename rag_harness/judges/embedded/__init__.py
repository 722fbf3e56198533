"""The embedded judge: no LLM, no network, deterministic. Its own files are private to it."""

from __future__ import annotations

from rag_harness.judges.embedded.judge import EmbeddedJudge, create

__all__ = ["EmbeddedJudge", "create"]
