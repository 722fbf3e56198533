"""A trial in a line of the log: what was found, what went into the prompt, tokens, retries and waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import Candidate, RetrievedChunk

_MOST_HITS = 20
"""Hits that are named; a first stage may return hundreds."""


@dataclass(frozen=True, slots=True)
class DebugLine:
    """The line of a row. Its text is made only where the log takes lines of that level."""

    row: ExperimentResult

    def __str__(self) -> str:
        """Return the line: ``e3-q1: ok in 1489 ms; found …; in the prompt …; 812 + 40 tokens in 1 call; …``."""
        row, usage = self.row, self.row.usage
        waited = f", waited {row.waited_ms:.0f} ms" if row.waited_ms else ""
        calls = f"{usage.calls} call{'s' * (usage.calls != 1)}"
        return "; ".join(
            [
                f"{row.trial_id}: {row.status} in {row.total_time_ms:.0f} ms",
                f"found {_hits(row.candidates)}",
                f"in the prompt {_hits(row.retrieved_chunks)}",
                f"{usage.prompt_tokens} prompt tokens, {usage.completion_tokens} answered, {calls}",
                f"retries {row.retries}{waited}",
            ]
        )


def _hits(hits: Sequence[Candidate | RetrievedChunk]) -> str:
    """Return the ids with their scores; a second score is the reranker's."""
    said = [
        f"{hit.chunk_id} {hit.score:.3f}" + (f"/{hit.rerank_score:.3f}" if hit.rerank_score is not None else "")
        for hit in hits[:_MOST_HITS]
    ]
    more = [f"and {len(hits) - _MOST_HITS} more"] if len(hits) > _MOST_HITS else []
    return ", ".join([*said, *more]) or "nothing"
