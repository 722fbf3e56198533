"""Searches again, wider and with other words, and keeps the better result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.retrieval.rarity import Rarity
from rag_harness.studies.reliability.expansion import expanded
from rag_harness.studies.reliability.searching import Searcher, SearchResult
from rag_harness.studies.retail.planning import FORMAT, searches_in
from rag_harness.types import Decision, Message

SYSTEM = (
    "A search of a company's documents found little. Put the question into other words that its documents may use: one "
    'or two searches, without answering. Reply as JSON: {"searches": ["..."]}'
)


@dataclass(frozen=True)
class Fallback:
    """Searches again.

    Args:
        searcher: finds sources and rates them.
        rewriter: finds other words; None if they come from the best hits.
        rarity: makes the weights of words, on first use.
    """

    searcher: Searcher
    rewriter: ChatModel | None
    rarity: Callable[[], Rarity]

    async def better(self, question: str, best: SearchResult, k: int, tried: int, trace: Trace) -> SearchResult:
        """Return the better of ``best`` and fallback ``tried``: other words, and each time twice as many hits."""
        words, how = await self._other_words(question, best, tried, trace)
        found = await self.searcher.search(question, [question, *words], k * 2**tried, trace)
        is_better = found.quality > best.quality
        outcome = "better" if is_better else "no better"
        trace.decisions.append(Decision("fallback", outcome, found.quality, best.quality, f"{how}: {'; '.join(words)}"))
        return found if is_better else best

    async def _other_words(self, question: str, best: SearchResult, tried: int, trace: Trace) -> tuple[list[str], str]:
        if self.rewriter is not None:
            asked = f"Question: {question}\nTry {tried}: found were {', '.join(_names(best))}"
            messages = [Message("system", SYSTEM), Message("user", asked)]
            said = await trace.complete(self.rewriter, messages, FORMAT, stage="rewrite", role="rewrite")
            searches, why_not = searches_in(said.text)
            if not why_not:
                return searches, "by model"
        with trace.stage("rewrite"):
            return [expanded(question, best.retrieved, self.rarity())], "by words of the best hits"


def _names(found: SearchResult) -> list[str]:
    return list(dict.fromkeys(hit.chunk.doc_id for hit in found.context))
