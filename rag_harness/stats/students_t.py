"""Student's quantile under its older name."""

from __future__ import annotations

from rag_harness.stats.distributions import t_quantile

__all__ = ["t_quantile"]
