"""The textbook study: a teaching assistant from candidates to sources, confidence, answer and citations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from rag_harness.core.protocols import ChatModel, Experiment, Retriever
from rag_harness.core.types import Answer, Chunk, Decision, Hit, IndexSpec, PipelineOutput, Query
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import data_of
from rag_harness.pipelines.parts import RunParts, read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import Retrieval
from rag_harness.studies.conversations import Rewriting, rewriting
from rag_harness.studies.textbook_retrieval import (
    EXTRACTIVE,
    PROMPTS,
    BookPlace,
    Fuse,
    Fused,
    Passages,
    Selection,
    SummariesFirst,
    Writer,
    book_place_of,
    by_rank,
    different_titles,
    floor_of,
    selected_text,
    weighted,
    written_by,
)

__all__ = ["DATA", "build_t1", "build_t2", "build_t3", "build_t3_rrf", "build_t4", "build_t5"]


# From candidates to the model's sources: the boost for selected text, the floor, the confidence.
#
# The boost only changes the order. Floor, confidence and shown relevance use the raw cosine.

NEAR, FEWEST, MOST_KEPT = 0.75, 3, 8
"""Adaptive top-k: the share of the first score that a section needs, and the fewest and the most sections. They were
set before any score was seen: five sections are in the middle."""


def cosine_of(hit: Hit) -> float:
    """Return the raw cosine of a hit, however it was ranked; its score if the cosine is not known."""
    return hit.scores.get("dense", hit.score)


def boosted(hits: Sequence[Hit], selection: Selection, factor: float) -> tuple[list[Hit], int]:
    """Return ``hits`` ordered by boosted scores, and how many were boosted.

    The score of a chunk with the selection is multiplied by ``factor``, up to 1. Ties are ordered by raw cosine, then
    by the earlier rank. A score that is not positive stays, since multiplying would lower it.
    """
    holds = [selection.is_in(hit.chunk.text) for hit in hits]
    scored = [
        (min(1.0, max(hit.score, hit.score * factor)) if held else min(1.0, hit.score), hit)
        for hit, held in zip(hits, holds, strict=True)
    ]
    ordered = sorted(scored, key=lambda pair: (-pair[0], -cosine_of(pair[1]), pair[1].rank))
    ranked = [
        replace(hit, rank=rank, scores={**hit.scores, "boosted": score}) for rank, (score, hit) in enumerate(ordered, 1)
    ]
    return ranked, sum(holds)


def boost(hits: Sequence[Hit], inputs: Mapping[str, Any], factor: float) -> tuple[list[Hit], Decision]:
    """Return ``hits`` in boosted order, and the decision about it."""
    selection = selected_text(inputs)
    why_not = _why_not(inputs, selection, factor)
    if why_not or selection is None:
        return list(hits), Decision("boost", "none", reason=why_not)
    ranked, held = boosted(hits, selection, factor)
    outcome, reason = _said(held, len(hits), [hit.rank for hit in hits] != _ranks_before(hits, ranked))
    length = f"; the selection has {len(selection.text):,} characters"
    return ranked, Decision("boost", outcome, float(held), None, f"{reason}, x{factor:g}{length}")


def _why_not(inputs: Mapping[str, Any], selection: Selection | None, factor: float) -> str:
    if "selected_text" not in inputs:
        return "nothing is selected"
    if selection is None:
        return f"selected_text is {type(inputs['selected_text']).__name__}, not text"
    if not selection.text:
        return "the selection is white space"
    return "this experiment does not boost" if factor == 1 else ""


def _said(held: int, of: int, moved: bool) -> tuple[str, str]:
    if not held:
        return "none", f"none of the {of} candidates holds the selection"
    if held == of:
        return "boosted", f"all {of} candidates hold the selection, which tells none of them from the others"
    order = "and the order changed" if moved else "and the order stayed"
    return "boosted", f"{held} of {of} candidates hold the selection {order}"


def _ranks_before(hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[int]:
    before = {hit.chunk.chunk_id: hit.rank for hit in hits}
    return [before[hit.chunk.chunk_id] for hit in ranked]


def above_floor(hits: Sequence[Hit], floor: float, keep: int) -> tuple[list[Hit], Decision]:
    """Return the first ``keep`` hits with a raw cosine of at least ``floor``, with new ranks, and the decision."""
    kept = [hit for hit in hits if cosine_of(hit) >= floor][:keep]
    best = max((cosine_of(hit) for hit in hits), default=None)
    if best is None:
        return [], Decision("floor", "nothing found", None, floor, "nothing was retrieved at all")
    passed = sum(cosine_of(hit) >= floor for hit in hits)
    reason = f"{passed} of {len(hits)} candidates reach the floor; value is the best cosine"
    decision = Decision("floor", "kept" if kept else "nothing found", best, floor, reason)
    return [replace(hit, rank=rank) for rank, hit in enumerate(kept, 1)], decision


def near_the_first(hits: Sequence[Hit]) -> tuple[list[Hit], Decision]:
    """Return the first hits whose score is near the score of the top hit, and the decision: adaptive top-k.

    The scores are the ones that hits are ordered by, after a boost if any.
    """
    scores = [hit.scores.get("boosted", hit.score) for hit in hits]
    least = NEAR * scores[0] if scores else None
    near = next((place for place, score in enumerate(scores) if least is not None and score < least), len(hits))
    kept = min(max(near, FEWEST), MOST_KEPT, len(hits))
    reason = (
        f"{near} of {len(hits)} sections have {NEAR:.0%} of the first one's score; {FEWEST} to {MOST_KEPT} are kept"
    )
    return list(hits[:kept]), Decision("sources", "adaptive", float(kept), least, reason)


def confidence_of(hits: Sequence[Hit], keep: int) -> float:
    """Return the mean of the ``keep`` best raw cosines, in [0, 1], without boost and floor; 0 without hits."""
    best = sorted(map(cosine_of, hits), reverse=True)[:keep]
    return min(1.0, max(0.0, fmean(best))) if best else 0.0


# The citations of an answer: sources by number, then chapters by name. Each valid citation becomes a link.

NO_SOURCE = 0
"""Entry in ``invalid_citations`` for a chapter without a source in the context, and so without a number."""

_CHAPTER = re.compile(r"\b(?:Module\s+(\d{1,4})\s*(?:[,>:–—-]\s*)?)?Chapter\s+(\d{1,4})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """A valid citation: the source, its title, and the target of the link."""

    source: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer with all of its citations.

    ``unknown`` are named chapters without a source; ``ambiguous`` are named chapters that several modules have.
    """

    answer: Answer
    links: tuple[Link, ...]
    unknown: tuple[str, ...]
    ambiguous: tuple[str, ...]

    @property
    def nowhere(self) -> tuple[str, ...]:
        """What the answer cites that is not in the context: sources by number, chapters by name."""
        return (*(f"Source {n}" for n in self.answer.invalid_citations if n != NO_SOURCE), *self.unknown)

    @property
    def decision(self) -> Decision:
        """The found citations as a decision of the row; the value counts the valid ones."""
        invalid = self.nowhere
        parts = [f"leads nowhere: {', '.join(invalid)}"] if invalid else []
        parts += [f"in several modules: {', '.join(self.ambiguous)}"] if self.ambiguous else []
        outcome = "invalid" if invalid else "cited" if self.links else "none"
        return Decision("citations", outcome, float(len(self.links)), reason="; ".join(parts))


def cited(answer: Answer, context: Sequence[Hit]) -> Cited:
    """Return ``answer``; the chapters that its text names are added to its citations."""
    places = [book_place_of(hit.chunk) for hit in context]
    numbers, unknown, ambiguous = dict.fromkeys(answer.citations), [], []
    for said, found in _named(answer.text, places):
        if len({places[n - 1].module for n in found}) > 1:
            ambiguous.append(said)
        elif found:
            # The best source of a chapter represents it, unless a source of the chapter is already cited by number.
            numbers.update({} if numbers.keys() & set(found) else {found[0]: None})
        else:
            unknown.append(said)
    invalid = (*answer.invalid_citations, *([NO_SOURCE] if unknown else []))
    full = replace(answer, citations=tuple(numbers), invalid_citations=tuple(dict.fromkeys(invalid)))
    links = tuple(Link(n, places[n - 1].title, places[n - 1].url) for n in numbers)
    return Cited(full, links, tuple(unknown), tuple(ambiguous))


def _named(text: str, places: Sequence[BookPlace]) -> Iterator[tuple[str, list[int]]]:
    """Yield each chapter that ``text`` names, once, with the sources from it, best first."""
    for said, module, chapter in dict.fromkeys(_mentions(text)):
        yield (
            said,
            [
                n
                for n, place in enumerate(places, 1)
                if place.chapter == chapter and (module is None or place.module == module)
            ],
        )


def _mentions(text: str) -> Iterator[tuple[str, int | None, int]]:
    for match in _CHAPTER.finditer(text):
        module, chapter = int(match[1]) if match[1] else None, int(match[2])
        yield (f"Module {module}, " if module is not None else "") + f"Chapter {chapter}", module, chapter


TITLES = 3
"""How many sections are suggested."""
NOTHING_FOUND = "I couldn't find relevant content."
CHECK = "Please check this in the book"


def nothing_found(titles: Sequence[str]) -> Answer:
    """Return the reply when no section is close enough. It counts as abstaining."""
    related = f" Related topics: {'; '.join(titles)}." if titles else ""
    return Answer(text=f"{NOTHING_FOUND}{related}", abstained=True)


def disclaimer(answer: Answer, confidence: float, threshold: float, titles: Sequence[str]) -> tuple[str, Decision]:
    """Return the text below an answer, and the decision; the text is empty if none is needed."""
    low = confidence < threshold
    reasons = ["the sections found match the question only loosely"] if low else []
    reasons += [] if answer.citations else ["the answer names no section"]
    if answer.abstained:
        return "", _decided("none", confidence, threshold, "the answer says that it does not know")
    if not reasons:
        return "", _decided("none", confidence, threshold, "")
    also = f" See also: {'; '.join(titles)}." if low and titles else ""
    said = " and ".join(reasons)
    return f"{CHECK}: {said}.{also}", _decided("added", confidence, threshold, said)


def _decided(outcome: str, confidence: float, threshold: float, reason: str) -> Decision:
    return Decision("disclaimer", outcome, confidence, threshold, reason)


def confidence_verdict(answer: Answer, confidence: float, threshold: float, unknown: Sequence[str]) -> Decision:
    """Return what a service says of an answer: pass, warn or abstain, with its reason codes.

    Args:
        answer: with its citations.
        confidence: mean cosine of the best sections.
        threshold: the floor.
        unknown: what the answer cites that is not in the context.
    """
    if answer.abstained:
        return Decision("decision", "abstain", confidence, threshold, "NOT_IN_SOURCES")
    codes = ["LOW_RELEVANCE"] if confidence < threshold else []
    codes += [] if answer.citations else ["NO_CITATION"]
    codes += [f"UNKNOWN_SOURCE: {', '.join(unknown)}"] if unknown else []
    return Decision("decision", "warn" if codes else "pass", confidence, threshold, "; ".join(codes))


# The teaching assistant: retrieve, boost, floor, confidence, then answer or decline; citations, disclaimer.
#
# Each step leaves a decision in the row.

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
        trace.retrieved, boosted = boost(trace.retrieved, query.inputs, rules.boost)
        most = MOST_KEPT if rules.adaptive else rules.top_k
        trace.context, kept = above_floor(trace.retrieved, rules.floor, most)
        trace.decisions += [*rules.chosen(), boosted, kept]
        if rules.adaptive:
            trace.context, adapted = near_the_first(trace.context)
            trace.decisions.append(adapted)

    async def _reply(self, query: Query, asked: str, trace: Trace) -> PipelineOutput:
        confidence = confidence_of(trace.retrieved, self.rules.top_k)
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
        titles = different_titles([*near, *(self.chunks() if len(near) < TITLES else ())], TITLES)
        trace.decisions += [
            Decision("answer", "declined", reason="no section to answer from: no model was asked"),
            Decision("decision", "abstain", confidence, self.rules.floor, "LOW_RETRIEVAL_QUALITY"),
        ]
        return nothing_found(titles)

    async def _generated(self, query: Query, asked: str, trace: Trace) -> Answer:
        with trace.stage("prompt"):
            messages = self.prompts.messages(_question(query, asked), trace.context, source_label)
        said = await trace.complete(self.chat, messages, response_format(False))
        with trace.stage("parse"):
            return read_answer(said.text, len(trace.context), False, said.finish_reason)

    def _finished(self, answer: Answer, trace: Trace, confidence: float) -> Answer:
        found = cited(answer, trace.context)
        trace.note("parse", links=[{"source": one.source, "title": one.title, "url": one.url} for one in found.links])
        titles = different_titles((hit.chunk for hit in trace.retrieved), TITLES)
        below, decision = disclaimer(found.answer, confidence, self.rules.floor, titles)
        outcome = "abstained" if answer.abstained else "answered"
        verdict = confidence_verdict(found.answer, confidence, self.rules.floor, found.nowhere)
        trace.decisions += [Decision("answer", outcome), found.decision, decision, verdict]
        return replace(found.answer, text=f"{found.answer.text}\n\n{below}") if below else found.answer


def source_label(hit: Hit) -> str:
    """Return the text after a source's number: file, ``Section: Module > Chapter > Heading``, raw cosine."""
    # A bracket would end the label.
    path = " > ".join(book_place_of(hit.chunk).path).replace("[", "(").replace("]", ")")
    return f"{hit.chunk.doc_id} | Section: {path} | Relevance: {cosine_of(hit):.2f}"


def _question(query: Query, asked: str) -> str:
    """Return the question after the selected text, on one line: a selection must not be able to begin a question."""
    selection = selected_text(query.inputs)
    if selection is None or not selection.text:
        return asked
    text = selection.text
    shown = text if len(text) <= SHOWN_SELECTION else f"{text[:SHOWN_SELECTION]} …"
    return f"The student has selected this text: «{shown}». {asked}"


DATA = "textbook"
TEMPERATURE, ANSWER_TOKENS = 0.3, 800


@dataclass(frozen=True, slots=True)
class Design:
    """The settings of an experiment of the textbook. Other experiments may differ in them.

    Attributes:
        chunker: cuts the pages.
        least: fewest tokens of a chunk; shorter ones are joined if the chunker can do so.
        chunk_size: longest chunk in tokens; an embedder reads a chunk that is too long in windows.
        overlap: tokens repeated between pieces of a section.
        boost: factor for the score of a chunk with the selected text; 1 disables it.
        floor: calibrated, record, or a number; see ``textbook_retrieval.floor_of``.
        passage: whether sections with the selection are candidates even if the question does not find them.
        search_selection: whether the selection is searched with the question.
        adaptive: whether the scores decide how many sources the model gets.
    """

    chunker: str = "headings"
    least: int = 500
    chunk_size: int = 1_500
    overlap: int = 200
    boost: float = 2.0
    floor: str = "calibrated"
    passage: bool = True
    search_selection: bool = False
    adaptive: bool = False

    def spec(self, parts: RunParts) -> IndexSpec:
        """Return the index of the book, with the run's embedder and index."""
        settings = parts.settings
        lengths = self.chunk_size, self.overlap
        return IndexSpec(self.chunker, *lengths, settings.embed_model, settings.index, least=self.least, windows=True)


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Finds candidates: its name, the retriever, what it searches, and what every row should say about it."""

    name: str
    retriever: Retriever
    searches: Sequence[Retrieval]
    decisions: Callable[[], tuple[Decision, ...]] = tuple


def nearest(_parts: RunParts, retrieval: Retrieval, _data: str) -> FirstStage:
    """Return the first stage of ``t1``: the chunks nearest by cosine."""
    return FirstStage("nearest", retrieval.dense, [retrieval])


def fused(fuse: Fuse) -> Callable[[RunParts, Retrieval, str], FirstStage]:
    """Return the first stage of ``t3``: chunks nearest by cosine and chunks best by words, fused."""
    return lambda _parts, retrieval, _data: FirstStage(
        fuse.__name__, Fused(retrieval.dense, retrieval.words, fuse), [retrieval]
    )


def summaries_first(parts: RunParts, retrieval: Retrieval, data: str) -> FirstStage:
    """Return the first stage of ``t5``: summaries of the sections of ``retrieval``, then these sections."""
    if parts.settings.writer_model:
        return _written_first(parts, retrieval)
    summaries = parts.retrieval(replace(retrieval.spec, chunker="summaries"), data)
    retriever = SummariesFirst(summaries.dense, retrieval.dense, lambda: retrieval.chunks)
    return FirstStage("summaries first", retriever, [retrieval, summaries], lambda: (EXTRACTIVE,))


def _written_first(parts: RunParts, retrieval: Retrieval) -> FirstStage:
    settings, chat = parts.settings, parts.chat("writer", temperature=0.0)
    decides = [settings.writer_model, settings.writer_base_url, settings.max_output_tokens, settings.seed]
    decides += filter(None, [settings.writer_request])
    summaries = parts.rewritten(
        retrieval, Writer(chat, parts.prompts(PROMPTS), settings.concurrency, parts.run, decides)
    )
    retriever = SummariesFirst(summaries.dense, retrieval.dense, lambda: retrieval.chunks)
    decided = cache(lambda: (written_by(chat.model, summaries.chunks),))
    return FirstStage("summaries first", retriever, [retrieval, summaries], decided)


def textbook(
    name: str,
    parts: RunParts,
    design: Design,
    first_stage: Callable[[RunParts, Retrieval, str], FirstStage] = nearest,
) -> Experiment:
    """Return the experiment ``name``: the assistant with the settings of ``design``, on the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval, prompts = parts.retrieval(design.spec(parts), data), parts.prompts("t1")
    floor, chosen = floor_of(retrieval.embedder.model, design.floor)
    first = first_stage(parts, retrieval, data)
    assistant = Assistant(
        first.retriever,
        parts.chat(temperature=TEMPERATURE, max_output_tokens=ANSWER_TOKENS),
        prompts,
        AssistantRules(
            design.boost,
            floor,
            lambda: (*first.decisions(), chosen),
            adaptive=design.adaptive,
            search_selection=design.search_selection,
        ),
        rewriting(parts, retrieval),
        lambda: retrieval.chunks,
        Passages(retrieval, retrieval.words) if design.passage else None,
    )
    return Experiment(
        name,
        assistant,
        data=data,
        ingredients={
            "design": asdict(design),
            "floor": floor,
            "top_k": TOP_K,
            "candidates": CANDIDATES,
            "first_stage": first.name,
        },
        retriever=first.retriever,
        prepare=_prepared(parts, first.searches),
        answer_from=assistant.answer_from,
        chunks=lambda: retrieval.chunks,
    )


def _prepared(parts: RunParts, searches: Sequence[Retrieval]) -> Callable[[Sequence[Query]], None]:
    def prepare(queries: Sequence[Query]) -> None:
        for search in searches:
            parts.prepared(search)(queries)

    return prepare


# T1, the assistant of the decision record: sections by heading, cosine, boost for selected text, floor.


def build_t1(parts: RunParts, name: str = "t1", **values: Any) -> Experiment:
    """Return this experiment, or a variant of it: ``values`` are those of its ``Design``."""
    return textbook(name, parts, Design(**values))


# T2, alternative A: windows of 512 tokens with an overlap of 128, regardless of where sections begin.


def build_t2(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t2", parts, Design(chunker="fixed", least=0, chunk_size=512, overlap=128))


# T3, alternative B: 0.7 of the cosine and 0.3 of BM25.


def build_t3(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t3", parts, Design(), fused(weighted))


# T3 with reciprocal rank fusion in place of weights.


def build_t3_rrf(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t3-rrf", parts, Design(), fused(by_rank))


# T4, alternative C: 1,500 to 3,000 tokens, sliding over the page.


def build_t4(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t4", parts, Design(chunker="sliding", least=1_500, chunk_size=3_000))


# T5, alternative D: searches summaries of the sections first, and returns the whole sections.


def build_t5(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return textbook("t5", parts, Design(), summaries_first)
