"""The pipeline of all experiments of the study: it makes the text to search for, then goes on as E3 does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from rag_harness.pipelines import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.studies.conversations.earlier_turns import earlier_turns
from rag_harness.studies.retail.e3_filtered_rag import FilteredRag, filtered
from rag_harness.types import Hit, Message, PipelineOutput, Query
from rag_harness.words.citation_marks import without_marks

DATA = "conversations"


class TurnSearch(Protocol):
    """Makes the text to search for of a turn and of what was said before it."""

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the text, and note the stage ``rewrite`` in ``trace``."""
        ...

    def ahead(self, query: Query) -> str:
        """Return the text, or the likeliest one if a model makes it. Its vector is prepared before the first trial."""
        ...


@dataclass(frozen=True)
class Conversing:
    """Answers turns of conversations.

    The text that is searched for is also what the reranker and the prompt get as the question. The model gets what was
    said before as messages in front of the prompt.
    """

    filtered: FilteredRag
    turn_search: TurnSearch

    async def answer(self, query: Query) -> PipelineOutput:
        trace, e3 = Trace(), self.filtered
        question = replace(query, text=await self.turn_search.searched(query, trace))
        await trace.retrieve(e3.retriever, question.text, e3.candidates)
        await trace.rerank(e3.reranker, question.text, e3.top_k)
        return await e3.generator.answer(question, trace, history_messages(query))

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        """Answer from ``hits`` alone, in their order."""
        trace = Trace(retrieved=list(hits), context=list(hits))
        question = replace(query, text=await self.turn_search.searched(query, trace))
        return await self.filtered.generator.answer(question, trace, history_messages(query))


def history_messages(query: Query) -> list[Message]:
    """Return the messages before a turn, for a prompt. Their citations name sources of other prompts."""
    return [replace(each, content=without_marks(each.content)) for each in earlier_turns(query).used]


def conversing(name: str, parts: RunParts, made: Callable[[RunParts, Retrieval], TurnSearch]) -> Experiment:
    """Return the experiment ``name``, which searches for what ``made`` makes, on the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval = parts.retrieval(data=data)
    turn_search = made(parts, retrieval)
    e3 = filtered(name, parts, prompted_as="c1", data=data)
    pipeline = Conversing(cast("FilteredRag", e3.pipeline), turn_search)

    def prepare(queries: Sequence[Query]) -> None:
        retrieval.prepare([turn_search.ahead(query) for query in queries])

    return replace(
        e3,
        pipeline=pipeline,
        prepare=prepare,
        answer_from=pipeline.answer_from,
        ingredients={"searches": type(turn_search).__name__},
        code={"turn search": (type(turn_search).__module__,)},
    )
