"""The agent that a model of role ``rewrite`` leads: it calls the tools ``search`` and ``look`` of OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.models.offered_tools import offering
from rag_harness.pipelines.step_trace import StepTrace
from rag_harness.protocols import ChatModel
from rag_harness.studies.retail.e3_filtered_rag import FilteredRag
from rag_harness.types import Chunk, Completion, Decision, Hit, Message, ToolCall

MOST_ROUNDS = 6
"""The most replies of the model that are asked for before the answer."""
LONGEST_QUERY, LONGEST_PAGE = 500, 6_000
"""The most characters of a search, and of a page that the model is shown."""
SYSTEM = (
    "You find what a retail support assistant needs to answer a customer. Search the help pages, look at what you "
    "found, and search again for what is missing: one search for each part of a question. Stop as soon as everything "
    "is found, by replying DONE. Do not answer the customer."
)


def _tool(name: str, said: str, argument: str, about: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {"type": "string", "description": about}}}
    whole = {**parameters, "required": [argument], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": said, "parameters": whole}}


TOOLS = (
    _tool("search", "Search the help pages. Returns the best passages, each with its page.", "query", "what to find"),
    _tool("look", "Read a page whole.", "page", "a page that a search returned, such as returns.md"),
)


@dataclass
class Led:
    """A trial that a model leads.

    Args:
        filtered: the retriever, the reranker, and how many chunks of each search count.
        chunks: returns the chunks of the documents, for pages that are looked at.
        most: the most searches.
        found: the best chunks of each search so far.
    """

    filtered: FilteredRag
    chunks: Callable[[], Sequence[Chunk]]
    most: int
    found: list[list[Hit]] = field(default_factory=list)

    async def search(self, question: str, leader: ChatModel, trace: StepTrace) -> list[list[Hit]]:
        """Return what the searches of the model found. How it ended is a decision of the row."""
        messages = [Message("system", SYSTEM), Message("user", f"Question: {question}")]
        for number in range(1, MOST_ROUNDS + 1):
            said = await self._asked(messages, leader, trace)
            if not said.tool_calls:
                return self._ended("the model stopped", number, trace)
            messages.append(Message("assistant", said.text, said.tool_calls))
            for call in said.tool_calls:
                messages.append(Message("tool", await self._done(call, trace), call_id=call.call_id))
        return self._ended("the most rounds", MOST_ROUNDS, trace)

    async def _asked(self, messages: Sequence[Message], leader: ChatModel, trace: StepTrace) -> Completion:
        with offering(TOOLS):
            return await trace.complete(leader, messages, stage="lead", role="rewrite")

    def _ended(self, why: str, rounds: int, trace: StepTrace) -> list[list[Hit]]:
        trace.decisions.append(Decision("search", "by model", float(rounds), MOST_ROUNDS, why))
        return self.found

    async def _done(self, call: ToolCall, trace: StepTrace) -> str:
        """Return what a call comes to, or what is wrong with it: the model may mend that."""
        given = _argument(call, {"search": "query", "look": "page"}.get(call.name, ""))
        if not given:
            return f"error: call search with a query or look with a page; got {call.name} {call.arguments:.200}"
        if call.name == "look":
            return str(await trace.tool("look", self._page, page=given))
        if len(self.found) >= self.most:
            return f"error: {self.most} searches were made, and no more are allowed"
        return await self._searched(given[:LONGEST_QUERY], trace)

    async def _searched(self, query: str, trace: StepTrace) -> str:
        e3 = self.filtered
        hits = await trace.search(e3.retriever, query, e3.candidates)
        best = (await trace.ranked(e3.reranker, query, hits))[: e3.top_k]
        self.found.append(best)
        return "\n\n".join(f"[{hit.chunk.doc_id}] {hit.chunk.text}" for hit in best) or "nothing was found"

    def _page(self, page: str) -> str:
        text = "\n".join(chunk.text for chunk in self.chunks() if chunk.doc_id == page)
        return text[:LONGEST_PAGE] or f"error: there is no page {page:.100}"


def _argument(call: ToolCall, name: str) -> str:
    """Return the argument of a call; empty where the call has none that can be used."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    said = given.get(name) if isinstance(given, Mapping) else None
    return " ".join(said.split()) if isinstance(said, str) else ""
