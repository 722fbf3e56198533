"""The two ways to search in a conversation without rewriting: the words of the turn alone, and all that was said."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.pipelines.trace import Trace
from rag_harness.studies.conversations.earlier_turns import EarlierTurns, earlier_turns
from rag_harness.studies.conversations.rewriting import STAGE, noted_search
from rag_harness.types import Query

BYTES_A_TOKEN = 2
"""Bytes of a token, for the length of a text that an embedder reads whole. An English token has about four."""


class LastTurn:
    """Searches for the words of the turn."""

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the words of the turn, noted in ``trace``."""
        with trace.stage(STAGE):
            return noted_search(query, query.text, "the turn alone", trace, EarlierTurns())

    def ahead(self, query: Query) -> str:
        """Return the same words, for preparation."""
        return query.text


@dataclass(frozen=True)
class JoinedTurns:
    """Searches for everything that was said, the turn at the end.

    Args:
        most_tokens: how many tokens the embedder reads. Of a text with more than ``BYTES_A_TOKEN`` as many bytes, the
            last ones are searched, from the beginning of a word.
    """

    most_tokens: int

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the joined text, noted in ``trace`` with what was cut."""
        with trace.stage(STAGE):
            whole, text = _joined(query), self.ahead(query)
            lost = len(whole) - len(text)
            why = f"the first {lost} of {len(whole)} characters are left out" if lost else ""
            return noted_search(query, text, "all turns", trace, earlier_turns(query), why)

    def ahead(self, query: Query) -> str:
        """Return the joined text, for preparation."""
        whole = _joined(query)
        most = BYTES_A_TOKEN * self.most_tokens
        kept = whole.encode(errors="replace")[-most:].decode(errors="ignore")
        return kept if len(kept) == len(whole) else kept.partition(" ")[2] or kept


def _joined(query: Query) -> str:
    return " ".join([*(each.content for each in earlier_turns(query).used), query.text])
