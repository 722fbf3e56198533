"""The teaching assistant: retrieve, boost, floor, confidence, then answer or decline; citations, disclaimer.

Each step leaves a decision in the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.generation import read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel, Retriever
from rag_harness.studies.conversations.rewriting import Rewriting
from rag_harness.studies.textbook import ordering, replies
from rag_harness.studies.textbook.book_places import book_place_of, different_titles
from rag_harness.studies.textbook.citations import cited
from rag_harness.studies.textbook.passages import Passages
from rag_harness.studies.textbook.selection import selected_text
from rag_harness.types import Answer, Chunk, Decision, Hit, PipelineOutput, Query

CANDIDATES, TOP_K = 10, 5
SHOWN_SELECTION = 2_000
"""The most characters of a selection that the model gets. A longer one is a page, for which there are the sources."""


@dataclass(frozen=True, slots=True)
class AssistantRules:
    """The settings of an experiment.

    ``chosen`` returns its choices for each row, and is called after retrieval. If ``adaptive``, the scores decide how
    many sources the model gets, in place of ``top_k``. If ``search_selection``, question and selection are searched
    together.
    """

    boost: float
    floor: float
    chosen: Callable[[], tuple[Decision, ...]] = tuple
    candidates: int = CANDIDATES
    top_k: int = TOP_K
    adaptive: bool = False
    search_selection: bool = False


@dataclass(frozen=True)
class Assistant:
    """Answers students' questions from the sections of a book.

    Args:
        retriever: finds candidates; their score ``dense`` is the raw cosine.
        chat: writes the answers.
        prompts: the experiment's templates.
        rules: boost, floor and counts.
        rewriting: makes a question that stands alone of one in a conversation.
        chunks: all chunks of the book, for titles to suggest if nothing was retrieved.
        passages: finds the sections with a selection; None if only those count that the retriever finds.
    """

    retriever: Retriever
    chat: ChatModel
    prompts: Prompts
    rules: AssistantRules
    rewriting: Rewriting
    chunks: Callable[[], Sequence[Chunk]]
    passages: Passages | None = None

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        asked = await self.rewriting.searched(query, trace)
        await self._retrieve(query, asked, trace)
        with trace.stage("quality"):
            self._choose(query, trace)
        return await self._reply(query, asked, trace)

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        """Answer only from ``hits``, in their order, without boost and floor."""
        trace = Trace(retrieved=list(hits), context=list(hits))
        return await self._reply(query, await self.rewriting.searched(query, trace), trace)

    async def _retrieve(self, query: Query, asked: str, trace: Trace) -> None:
        selection, passages = selected_text(query.inputs), self.passages
        if selection is None or not selection.text or passages is None:
            await trace.retrieve(self.retriever, asked, self.rules.candidates)
            return
        searched = asked
        if self.rules.search_selection:
            searched, decision = await trace.off_loop("retrieve", passages.searched, asked, selection)
            trace.decisions.append(decision)
        await trace.retrieve(self.retriever, searched, self.rules.candidates)
        found = await trace.off_loop("retrieve", passages.beside, trace.retrieved, searched, selection)
        trace.retrieved, decision = found
        trace.decisions.append(decision)

    def _choose(self, query: Query, trace: Trace) -> None:
        rules = self.rules
        trace.retrieved, boosted = ordering.boost(trace.retrieved, query.inputs, rules.boost)
        most = ordering.MOST_KEPT if rules.adaptive else rules.top_k
        trace.context, kept = ordering.above_floor(trace.retrieved, rules.floor, most)
        trace.decisions += [*rules.chosen(), boosted, kept]
        if rules.adaptive:
            trace.context, adapted = ordering.near_the_first(trace.context)
            trace.decisions.append(adapted)

    async def _reply(self, query: Query, asked: str, trace: Trace) -> PipelineOutput:
        confidence = ordering.confidence_of(trace.retrieved, self.rules.top_k)
        low = confidence < self.rules.floor
        trace.decisions.append(
            Decision("confidence", "low" if low else "enough", confidence, self.rules.floor, "mean cosine of the best")
        )
        if not trace.context:
            return trace.output(self._declined(trace, confidence), confidence)
        answer = await self._generated(query, asked, trace)
        return trace.output(self._finished(answer, trace, confidence), confidence)

    def _declined(self, trace: Trace, confidence: float) -> Answer:
        near = [hit.chunk for hit in trace.retrieved]
        titles = different_titles([*near, *(self.chunks() if len(near) < replies.TITLES else ())], replies.TITLES)
        trace.decisions += [
            Decision("answer", "declined", reason="no section to answer from: no model was asked"),
            Decision("decision", "abstain", confidence, self.rules.floor, "LOW_RETRIEVAL_QUALITY"),
        ]
        return replies.nothing_found(titles)

    async def _generated(self, query: Query, asked: str, trace: Trace) -> Answer:
        with trace.stage("prompt"):
            messages = self.prompts.messages(_question(query, asked), trace.context, source_label)
        said = await trace.complete(self.chat, messages, response_format(False))
        with trace.stage("parse"):
            return read_answer(said.text, len(trace.context), False, said.finish_reason)

    def _finished(self, answer: Answer, trace: Trace, confidence: float) -> Answer:
        found = cited(answer, trace.context)
        trace.note("parse", links=[{"source": one.source, "title": one.title, "url": one.url} for one in found.links])
        titles = different_titles((hit.chunk for hit in trace.retrieved), replies.TITLES)
        below, decision = replies.disclaimer(found.answer, confidence, self.rules.floor, titles)
        outcome = "abstained" if answer.abstained else "answered"
        verdict = replies.verdict(found.answer, confidence, self.rules.floor, found.nowhere)
        trace.decisions += [Decision("answer", outcome), found.decision, decision, verdict]
        return replace(found.answer, text=f"{found.answer.text}\n\n{below}") if below else found.answer


def source_label(hit: Hit) -> str:
    """Return the text after a source's number: file, ``Section: Module > Chapter > Heading``, raw cosine."""
    # A bracket would end the label.
    path = " > ".join(book_place_of(hit.chunk).path).replace("[", "(").replace("]", ")")
    return f"{hit.chunk.doc_id} | Section: {path} | Relevance: {ordering.cosine_of(hit):.2f}"


def _question(query: Query, asked: str) -> str:
    """Return the question after the selected text, on one line: a selection must not be able to begin a question."""
    selection = selected_text(query.inputs)
    if selection is None or not selection.text:
        return asked
    text = selection.text
    shown = text if len(text) <= SHOWN_SELECTION else f"{text[:SHOWN_SELECTION]} …"
    return f"The student has selected this text: «{shown}». {asked}"
