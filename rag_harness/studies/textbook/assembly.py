"""Puts the experiments of the textbook together: their settings, and the experiment made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

from rag_harness.pipelines import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment, Retriever
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.studies.conversations.rewriting import rewriting
from rag_harness.studies.textbook.assistant import CANDIDATES, TOP_K, Assistant, AssistantRules
from rag_harness.studies.textbook.expansion import EXTRACTIVE, SummariesFirst
from rag_harness.studies.textbook.floors import floor_of
from rag_harness.studies.textbook.fusion import Fuse, Fused
from rag_harness.studies.textbook.passages import Passages
from rag_harness.studies.textbook.section_summaries import PROMPTS, Writer, written_by
from rag_harness.types import Decision, IndexSpec, Query

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
        boost: factor for the score of a chunk with the selected text; 1 is no boost.
        floor: calibrated, record, or a number; see ``floors.floor_of``.
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
