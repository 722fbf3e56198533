"""Puts the experiments of the reliability engine together: their settings, and the experiment made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from rag_harness.files.sources import file_digest
from rag_harness.judges.calibration.confidence_file import read_confidence
from rag_harness.judges.made import judge_of
from rag_harness.judges.traits import traits
from rag_harness.measures.judged import Judge
from rag_harness.models.model_names import chat_name
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines import data_of
from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment, Reranker
from rag_harness.registry.revisions import REVISIONS
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.retrieval.retrievers import HybridRetriever, RerankedRetriever
from rag_harness.settings.profiles import EMBEDDED_URL
from rag_harness.settings.reliability_numbers import USUAL, ReliabilityNumbers, Thresholds
from rag_harness.studies.reliability.asking_again import TEMPERATURE, SecondAsking
from rag_harness.studies.reliability.confidence import Confidence
from rag_harness.studies.reliability.contradicting import MOST_TOKENS, ContradictionModel
from rag_harness.studies.reliability.engine import Reliable, Steps
from rag_harness.studies.reliability.fallback import Fallback
from rag_harness.studies.reliability.searching import Searcher
from rag_harness.studies.retail.subquestions import subquestions
from rag_harness.types import Query


@dataclass(frozen=True, slots=True)
class Design:
    """The settings of an experiment. Other experiments may differ in them.

    Attributes:
        steps: the steps of the engine.
        hybrid: whether to search by words, too, and not only by meaning.
        mode: whose thresholds to use.
        original: whether to rate retrieval as the first design did.
    """

    steps: Steps = Steps()
    hybrid: bool = True
    mode: Literal["normal", "strict"] = "normal"
    original: bool = False

    def thresholds(self, numbers: ReliabilityNumbers) -> Thresholds:
        """Return the thresholds of its mode."""
        return numbers.strict if self.mode == "strict" else numbers.thresholds


def reliable(name: str, parts: RunParts, design: Design) -> Experiment:
    """Return the experiment ``name``: the engine with the settings of ``design``, on the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval, prompts = parts.retrieval(data=data), parts.prompts("r1")
    reranker, rewriter = retrieval.reranker(), parts.rewriter()
    retrievers = [retrieval.dense, *([retrieval.words] if design.hybrid else [])]
    rarity = parts.rarity(retrieval)
    numbers = parts.settings.reliability_numbers or USUAL
    thresholds = design.thresholds(numbers)
    searcher = Searcher(retrievers, reranker, rarity, parts.settings.top_k, design.original, numbers.weights)
    judge = judge_of(parts)
    contradictions = _contradiction_model(parts, judge)
    file = parts.settings.folder("reliability") / f"{name}.json"

    def made_of() -> Mapping[str, Any]:
        made = _made_of(name, parts, retrieval, reranker, judge)
        asked = {"model asked for contradictions": contradictions.chat.model} if contradictions.chat else {}
        return {**made, **asked, **_changed(numbers, design)}

    pipeline = Reliable(
        searcher,
        Fallback(searcher, rewriter, rarity),
        Generator(parts.chat(), prompts),
        _again(parts, prompts),
        judge,
        contradictions,
        rewriter,
        Confidence(read_confidence(file), cache(made_of), numbers.formula),
        thresholds,
        parts.settings.candidates,
        design.steps,
    )
    first = HybridRetriever(retrievers, depth=parts.settings.candidates) if design.hybrid else retrieval.dense
    return Experiment(
        name,
        pipeline,
        data=data,
        ingredients={
            "design": asdict(design),
            "thresholds": asdict(thresholds),
            "weights": {**asdict(numbers.weights), **asdict(numbers.formula)},
            "judged_by": [judge.name, judge.model, judge.revision],
            "calibration": file_digest(file) if file.is_file() else "",
        },
        retriever=RerankedRetriever(first, reranker, parts.settings.candidates),
        prepare=_prepared(retrieval, design),
        chunks=lambda: retrieval.chunks,
    )


def _again(parts: RunParts, prompts: Prompts) -> SecondAsking:
    """Return what asks a second time: at another temperature; without one, with other sources."""
    varies = parts.settings.chat_base_url == EMBEDDED_URL
    return SecondAsking(parts.chat() if varies else parts.chat(temperature=TEMPERATURE), prompts, varies)


def _contradiction_model(parts: RunParts, judge: Judge) -> ContradictionModel:
    """Return the judge's model, else the one that answers; none where both are parts of this process."""
    settings = parts.settings
    answers_here = settings.chat_base_url == EMBEDDED_URL or chat_name(settings) == "mock"
    role = "judge" if traits(judge).asks_model else "" if answers_here else "answer"
    if not role:
        return ContradictionModel()
    return ContradictionModel(parts.chat(role, temperature=0.0, max_output_tokens=MOST_TOKENS), role)


def _prepared(retrieval: Retrieval, design: Design) -> Callable[[Sequence[Query]], None]:
    def prepare(queries: Sequence[Query]) -> None:
        parted = [search for query in queries for search in subquestions(query.text)]
        retrieval.prepare(parted if design.steps.decompose else [query.text for query in queries])

    return prepare


def _made_of(name: str, parts: RunParts, retrieval: Retrieval, reranker: Reranker, judge: Judge) -> Mapping[str, Any]:
    """Return everything that the signals depend on. If any of it changes, a calibration is no longer valid."""
    return {
        "experiment": name,
        "embedder": f"{retrieval.embedder.model} {retrieval.embedder.revision}",
        "reranker": f"{reranker.model} {reranker.revision}",
        "index": retrieval.content_digest,
        "answering model": parts.settings.chat_model,
        "judge": f"{judge.name} {judge.model} {judge.revision}",
        "top_k": parts.settings.top_k,
        "candidates": parts.settings.candidates,
        "code of the signals": REVISIONS["reliability/signals"],
    }


def _changed(numbers: ReliabilityNumbers, design: Design) -> dict[str, Any]:
    """Return the numbers that decide what is found and what is answered, where a suite has set others.

    The other thresholds do not count: they only decide what is done with a confidence.
    """
    ours, shipped = design.thresholds(numbers), design.thresholds(USUAL)
    changed: dict[str, Any] = {}
    if numbers.weights != USUAL.weights:
        changed["weights of retrieval quality"] = asdict(numbers.weights)
    if design.steps.gate and (ours.go_on, ours.fallback) != (shipped.go_on, shipped.fallback):
        changed["thresholds of the gate"] = {"go_on": ours.go_on, "fallback": ours.fallback}
    return changed
