"""How the experiments of the textbook are put together: what each sets, and the experiment that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rag_harness.files.sources import source_digest
from rag_harness.pipelines import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.textbook.assistant import CANDIDATES, TOP_K, Assistant, Rules
from rag_harness.pipelines.textbook.floors import floor_of
from rag_harness.protocols import ChatModel, Experiment, Retriever
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.types import IndexSpec

DATA = "textbook"
TEMPERATURE, ANSWER_TOKENS = 0.3, 800


@dataclass(frozen=True, slots=True)
class Design:
    """What an experiment of the textbook sets, and another may set otherwise.

    Attributes:
        chunker: cuts the pages.
        chunk_size: longest chunk in tokens.
        overlap: tokens repeated between pieces of a section.
        boost: what the score of a chunk with the selected text is multiplied by; 1 is no boost.
        floor: calibrated, record, or a number; see ``floors.floor_of``.
    """

    chunker: str = "sections"
    chunk_size: int = 1_500
    overlap: int = 200
    boost: float = 2.0
    floor: str = "calibrated"

    def spec(self, parts: RunParts) -> IndexSpec:
        """Return how the book becomes an index, with the run's embedder and index."""
        settings = parts.settings
        return IndexSpec(self.chunker, self.chunk_size, self.overlap, settings.embed_model, settings.index)


FirstStage = Callable[[RunParts, Retrieval, str], Retriever]
"""Parts, the retrieval of the design, the name of its data -> what finds candidates."""


def nearest(_parts: RunParts, retrieval: Retrieval, _data: str) -> Retriever:
    """Return the first stage of ``t1``: the nearest chunks by cosine."""
    return retrieval.dense


def textbook(name: str, parts: RunParts, design: Design, first_stage: FirstStage = nearest) -> Experiment:
    """Return the experiment ``name``: the assistant under ``design``, on the data that it is asked about."""
    data = data_of(name, parts.settings)
    retrieval, prompts = parts.retrieval(design.spec(parts), data), parts.prompts("t1")
    floor, chosen = floor_of(retrieval.embedder.model, design.floor)
    retriever = first_stage(parts, retrieval, data)
    assistant = Assistant(
        retriever,
        parts.chat(temperature=TEMPERATURE, max_output_tokens=ANSWER_TOKENS),
        prompts,
        Rules(design.boost, floor, chosen),
        _rewriter(parts),
        lambda: retrieval.chunks,
    )
    return Experiment(
        name,
        assistant,
        data=data,
        ingredients={
            **parts.made_of_retrieval(retrieval, data=data, top_k=TOP_K),
            **parts.made_of_generation(prompts, temperature=TEMPERATURE, max_output_tokens=ANSWER_TOKENS),
            **_own(parts, design, floor),
        },
        retriever=retriever,
        prepare=parts.prepared(retrieval),
        answer_from=assistant.answer_from,
        chunks=lambda: retrieval.chunks,
    )


def _rewriter(parts: RunParts) -> ChatModel | None:
    """Return the model of role ``rewrite`` where one is named: the answer's own is not asked in its place."""
    return parts.chat("rewrite", temperature=0.0) if parts.settings.rewrite_model else None


def _own(parts: RunParts, design: Design, floor: float) -> dict[str, Any]:
    settings = parts.settings
    return {
        "design": asdict(design),
        "floor": floor,
        "candidates": CANDIDATES,
        "rewritten_by": [settings.rewrite_model, settings.rewrite_base_url] if settings.rewrite_model else [],
        "textbook": source_digest("rag_harness.pipelines.textbook"),
    }
