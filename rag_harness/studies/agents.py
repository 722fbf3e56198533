"""The study of agents: plan, search, look, search again, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any, cast

from rag_harness.core.protocols import ChatModel, Experiment
from rag_harness.core.text.language_detection import asked_language
from rag_harness.core.text.terms import term, terms, tokens
from rag_harness.core.types import Chunk, Completion, Decision, Hit, Message, PipelineOutput, Query, ToolCall
from rag_harness.models.calls import offering
from rag_harness.pipelines.experiments import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import StepTrace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.retail import MOST_SEARCHES, FilteredRag, filtered, planned, subquestions

__all__ = ["DATA", "build_a1", "build_a1_once"]


COVERED = 0.75
"""The share of a part's words, by weight, that one chunk has to have. With less, nothing was found for the part."""
FEWEST_MISSING = 2
"""The fewest words that are worth a search of their own."""


@dataclass(frozen=True, slots=True)
class Looked:
    """An agent's assessment of its findings.

    Attributes:
        search: the next search; empty where the findings suffice, or nothing is left to search for.
        why: the reason, which goes into the row.
        missing: words of the question that no chunk has, in its order.
    """

    search: str
    why: str
    missing: tuple[str, ...] = ()


def looked(plan: Sequence[str], asked: Collection[str], found: Sequence[Chunk], rarity: Rarity) -> Looked:
    """Return what to search for next.

    First comes the part of the plan that the found chunks cover least; where each part is covered or was asked, the
    words of the question that no chunk has.

    Args:
        plan: the question, then its parts.
        asked: what was searched for already.
        found: the chunks that were found.
        rarity: the weights of words.
    """
    left = {part: _covered(part, found, rarity) for part in plan if part not in asked}
    worst = min(left, key=lambda part: left[part], default="")
    missing = _missing(plan[0], found)
    if worst and left[worst] < COVERED:
        return Looked(worst, f"the best chunk has {left[worst]:.0%} of what this part asks", missing)
    words = " ".join(missing)
    if len(missing) >= FEWEST_MISSING and words not in asked:
        return Looked(words, "no chunk has these words", missing)
    return Looked("", "each part is covered" if not missing else "nothing is left to search for", missing)


def _covered(part: str, found: Sequence[Chunk], rarity: Rarity) -> float:
    """Return the largest share of a part's words that a chunk has, by weight; 1 for a part without words."""
    weights = {word: rarity.of(word) for word in terms(part, asked_language(part))}
    whole = sum(weights.values())
    held = (sum(weights[word] for word in weights.keys() & terms(chunk.text, chunk.language)) for chunk in found)
    return max(held, default=0.0) / whole if whole else 1.0


def _missing(question: str, found: Sequence[Chunk]) -> tuple[str, ...]:
    """Return the words of a question that no chunk has, each once, as they are written."""
    language, have = asked_language(question), set[str]()
    for chunk in found:
        have |= terms(chunk.text, chunk.language)
    words = {term(token, language): token for token in reversed(tokens(question))}
    return tuple(word for form, word in reversed(words.items()) if form and form not in have)


# The agent that a model of role ``rewrite`` leads: it calls the tools ``search`` and ``look`` of OpenAI's protocol.

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
class ToolAgent:
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


# The agent of the study: plan, search, look, search again, answer. Each of these is a step of its row.

DATA = "agents"


@dataclass(frozen=True)
class SearchAgent:
    """Searches up to ``most`` times, and answers from the best chunks of each search.

    A model of role ``rewrite`` leads it by tools; without one rules do.

    Each search keeps the best of its own candidates, by the reranker and its own words: a chunk that answers one part
    of a question is not close to the whole of it.
    """

    filtered: FilteredRag
    rewriter: ChatModel | None
    rarity: Callable[[], Rarity]
    chunks: Callable[[], Sequence[Chunk]]
    most: int = MOST_SEARCHES

    async def answer(self, query: Query) -> PipelineOutput:
        with StepTrace() as trace:
            if self.rewriter is None:
                found = await self._by_rules(query.text, trace)
            else:
                found = await ToolAgent(self.filtered, self.chunks, self.most).search(query.text, self.rewriter, trace)
            trace.context = in_turn(found)[: self.filtered.top_k]
            return await self.filtered.generator.answer(query, trace)

    async def _by_rules(self, question: str, trace: StepTrace) -> list[list[Hit]]:
        e3, plan = self.filtered, await planned(question, None, trace)
        found, asked, search = list[list[Hit]](), list[str](), plan[0]
        while search:
            hits = await trace.search(e3.retriever, search, e3.candidates)
            found.append((await trace.ranked(e3.reranker, search, hits))[: e3.top_k])
            asked.append(search)
            search = self._next(plan, asked, found, trace) if len(asked) < self.most else ""
        return found

    def _next(self, plan: Sequence[str], asked: Sequence[str], found: Sequence[Sequence[Hit]], trace: StepTrace) -> str:
        chunks = [hit.chunk for hits in found for hit in hits]
        with trace.step("look", "decide", {"chunks": len(chunks)}) as step:
            seen = looked(plan, asked, chunks, self.rarity())
            step.output = {"next": seen.search, "why": seen.why, "missing": list(seen.missing)}
        return seen.search


def in_turn(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return the hits of several searches, the best of each first, then the second of each; each chunk once."""
    first: dict[str, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*found)):
        if hit is not None:
            first.setdefault(hit.chunk.chunk_id, hit)
    return list(first.values())


def seeking(name: str, parts: RunParts, most: int = MOST_SEARCHES) -> Experiment:
    """Return the experiment ``name``, which searches up to ``most`` times over the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval = parts.retrieval(data=data)
    e3 = filtered(name, parts, prompted_as="e3", data=data)
    rarity = parts.rarity(retrieval)
    agent = SearchAgent(cast("FilteredRag", e3.pipeline), parts.rewriter(), rarity, lambda: retrieval.chunks, most)

    def prepare(queries: Sequence[Query]) -> None:
        # What is missing is not known before the first search: only what rules plan is embedded ahead.
        retrieval.prepare([search for query in queries for search in subquestions(query.text)[:most]])

    return replace(e3, pipeline=agent, prepare=prepare, ingredients={"searches": most})


def build_a1(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return seeking("a1", parts)


def build_a1_once(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return seeking("a1-once", parts, most=1)
