"""The pages of a pipeline's hits, under the names of the knowledge base where the pipeline calls them otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rag_harness.retrieval.documents import document_of
from rag_harness.types import Hit, PipelineOutput


def with_page_names(output: PipelineOutput, page_named: Callable[[str], str]) -> PipelineOutput:
    """Return an output whose hits name pages as the knowledge base does; names that fit no page stay."""
    retrieved, context = (
        tuple(_renamed(hit, page_named) for hit in hits) for hits in (output.retrieved, output.context)
    )
    return replace(output, retrieved=retrieved, context=context)


def _renamed(hit: Hit, page_named: Callable[[str], str]) -> Hit:
    chunk = hit.chunk
    page = page_named(chunk.doc_id or document_of(chunk.chunk_id))
    if not page or (page == chunk.doc_id and document_of(chunk.chunk_id) == page):
        return hit
    part = chunk.chunk_id.rpartition("#")[2].replace("#", ".")
    # An id without a part stands whole behind the page, so that two chunks of a page keep ids of their own.
    chunk_id = chunk.chunk_id if document_of(chunk.chunk_id) == page else f"{page}#{part}"
    return replace(hit, chunk=replace(chunk, chunk_id=chunk_id, doc_id=page))
