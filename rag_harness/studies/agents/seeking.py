"""The agent of the study: plan, search, look, search again, answer. Each of these is a step of its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import cast

from rag_harness.pipelines import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.step_trace import StepTrace
from rag_harness.protocols import ChatModel, Experiment
from rag_harness.retrieval.rarity import Rarity
from rag_harness.studies.agents.by_tools import Led
from rag_harness.studies.agents.looking import looked
from rag_harness.studies.retail.e3_filtered_rag import FilteredRag, filtered
from rag_harness.studies.retail.planning import planned
from rag_harness.studies.retail.subquestions import MOST_SEARCHES, subquestions
from rag_harness.types import Chunk, Hit, PipelineOutput, Query

DATA = "agents"


@dataclass(frozen=True)
class Seeking:
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
                found = await Led(self.filtered, self.chunks, self.most).search(query.text, self.rewriter, trace)
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
    agent = Seeking(cast("FilteredRag", e3.pipeline), parts.rewriter(), rarity, lambda: retrieval.chunks, most)

    def prepare(queries: Sequence[Query]) -> None:
        # What is missing is not known before the first search: only what rules plan is embedded ahead.
        retrieval.prepare([search for query in queries for search in subquestions(query.text)[:most]])

    return replace(e3, pipeline=agent, prepare=prepare, ingredients={"searches": most})
