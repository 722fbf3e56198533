"""A trial in a line of the log."""

from __future__ import annotations

from rag_harness.runs.trial import DebugLine
from tests.unit.rows import failed_row, make_row


def test_hits_tokens_retries_and_waits_are_said() -> None:
    hits = [{"chunk_id": f"a#{n}", "score": 1 - n / 100, "rerank_score": n / 10} for n in range(22)]
    row = make_row(candidates=hits, retries=2, waited_ms=3012.4)
    said = str(DebugLine(row))
    assert "; found a#0 1.000/0.000, a#1 0.990/0.100, " in said
    assert "a#19 0.810/1.900, and 2 more; in the prompt " in said
    tokens = f"{row.usage.prompt_tokens} prompt tokens, {row.usage.completion_tokens} answered, {row.usage.calls} call"
    assert tokens in said
    assert said.endswith("; retries 2, waited 3012 ms")


def test_a_failed_trial_without_hits_has_a_line_too() -> None:
    said = str(DebugLine(failed_row().model_copy(update={"candidates": (), "retrieved_chunks": ()})))
    assert said.startswith("e3-q1: error in ")
    assert "; found nothing; in the prompt nothing; " in said
