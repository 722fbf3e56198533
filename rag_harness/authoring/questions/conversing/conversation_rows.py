"""Writes drafted conversations as lines of ``queries.jsonl``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from rag_harness.authoring.questions.conversing.turn_draft import ConversationDraft, TurnDraft
from rag_harness.authoring.questions.draft import MADE_OF


def conversation_rows(
    drafts: Iterable[ConversationDraft], by: str, taken: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a line for each conversation, numbered, as ``dataset.queries`` reads them. No id is in ``taken``."""
    number = 0
    for draft in drafts:
        number += 1
        while f"conv_{number:03d}" in taken:
            number += 1
        yield {
            "conversation": f"conv_{number:03d}",
            "turns": [_turn(turn) for turn in draft.turns],
            "metadata": {"generated_by": by, "reviewed": "no"},
        }


def _turn(turn: TurnDraft) -> dict[str, Any]:
    alone = turn.alone
    return {
        "query": turn.text,
        **({} if alone.text == turn.text else {"standalone": alone.text}),
        "query_type": alone.kind,
        "ground_truth": alone.ground_truth,
        "context_reference": list(alone.pages),
        "evidence": [{"filename": each.filename, "quote": each.quote} for each in alone.evidence],
        "metadata": {"turn_kind": turn.kind, "made_of": MADE_OF.join(alone.made_of), **alone.metadata},
    }
