"""The embedded judge: deterministic, without an LLM and without a network. Its files are private to it."""

from __future__ import annotations

from rag_harness.judges.embedded.judge import EmbeddedJudge, create

__all__ = ["EmbeddedJudge", "create"]
