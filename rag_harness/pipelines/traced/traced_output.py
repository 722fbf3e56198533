"""From a trace to a pipeline's output: documents are placed, and steps, retrieved hits and context come of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_harness.errors import TraceError
from rag_harness.pipelines.endpoint.contexts import Context, is_uuid
from rag_harness.pipelines.endpoint.placing import BY_ID, NO_TEXT, PlacedContexts, Placing
from rag_harness.pipelines.endpoint.said import answer_of
from rag_harness.pipelines.endpoint.service_answer import ServiceAnswer
from rag_harness.traces.found_documents import FoundDocument
from rag_harness.traces.seen_trace import CAPTURE, HIDDEN, SeenTrace
from rag_harness.traces.steps import SeenStep
from rag_harness.types import Hit, PipelineOutput, Stage

SOURCE = "search"
"""Source of the hits that a trace tells."""
_SHOWN = 100


def _context(document: FoundDocument) -> Context:
    # The id of a chunk must be that of the last run, and a UUID is new in each.
    is_new = is_uuid(document.id) and bool(document.text)
    names = (document.id, *document.names) if is_new else document.names
    return Context(document.text, "" if is_new else document.id, score=document.score, others=names)


def output_of(seen: SeenTrace, placing: Placing, answer: str) -> PipelineOutput:
    """Return the output of an app that said ``answer``. Citations are read off its text: ``[Source 1]``.

    Raises:
        TraceError: the words of a document of the context are told nowhere, and it is no document of the run.
    """
    documents = seen.outcome.documents
    placed = placing.place([_context(each) for each in documents])
    scores = _rerank_scores(seen)
    hits = [hit.reranked(scores[at], hit.rank) if at in scores else hit for at, hit in enumerate(placed.hits)]
    first, given = (
        tuple(replace(hits[at], rank=rank) for rank, at in enumerate(numbers, 1))
        for numbers in (seen.outcome.first, seen.given)
    )
    given = tuple(_with_text(hit, documents[at], placing) for hit, at in zip(given, seen.given, strict=True))
    return PipelineOutput(
        answer_of(ServiceAnswer(answer), given), retrieved=first, context=given, stages=_stages(seen, placed)
    )


def _with_text(hit: Hit, document: FoundDocument, placing: Placing) -> Hit:
    """Return a hit of the context with its words; where the trace has none, with those of the page that its id names.

    A judge would hold an answer against an empty text.
    """
    if hit.chunk.text:
        return hit
    text = placing.text_of(hit.chunk.doc_id)
    if not text:
        named = document.id or document.names[0]
        raise TraceError(
            f"Document {named[:_SHOWN]!r} of the context has no words in the trace, and no document of the run has its "
            f"id, so the answer could only be judged by an empty text. "
            f"{HIDDEN if document.hidden else CAPTURE}; or name the documents that it is one of: --rag-kb."
        )
    return replace(hit, chunk=replace(hit.chunk, text=text))


def _rerank_scores(seen: SeenTrace) -> dict[int, float]:
    """Return the score that each document had from the last reranker that states one, by number."""
    scores: dict[int, float] = {}
    for step, found in zip(seen.steps, seen.outcome.of_step, strict=True):
        if step.kind == "rerank":
            scores |= {at: document.score for at, document in found.items() if document.score is not None}
    return scores


def _stages(seen: SeenTrace, placed: PlacedContexts) -> tuple[Stage, ...]:
    stages = [_stage(step, found, placed.hits) for step, found in zip(seen.steps, seen.outcome.of_step, strict=True)]
    # How documents were placed is said once for a trial.
    first = next((at for at, stage in enumerate(stages) if stage.kind == "retrieve"), None)
    if first is not None:
        # A context without text has that of the page, which "pages_as_texts" says.
        how = Counter({BY_ID: placed.how.get(NO_TEXT, 0)}) + Counter({**placed.how, NO_TEXT: 0})
        notes = {**stages[first].detail, "placed": dict(how), "context_by": seen.read_off}
        silent = sum(not seen.outcome.documents[at].text for at in seen.given)
        notes |= {"pages_as_texts": silent} if silent else {}
        stages[first] = replace(stages[first], detail=notes)
    return tuple(stages)


def _stage(step: SeenStep, found: Mapping[int, FoundDocument], hits: Sequence[Hit]) -> Stage:
    asked = step.model_call
    calls = () if asked is None else (asked.call,)
    own = tuple(
        Hit(hits[at].chunk, 1 / rank if document.score is None else document.score, rank, SOURCE)
        for rank, (at, document) in enumerate(found.items(), 1)
    )
    return Stage(step.name, step.ms, calls, step.detail, step.kind, step.input, step.output, own)
