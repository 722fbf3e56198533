"""What came of documents on their way into an index, as a person reads it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence

from rag_harness.dataset.library import Library
from rag_harness.ingest.places import shown
from rag_harness.retrieval.duplicates import USUAL, duplicates
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.types import Chunk, Document

MOST_NAMED = 20
"""Duplicates that are named one by one."""


def summary_lines(library: Library, retrieval: Retrieval | None, seconds: float) -> list[str]:
    """Return the summary of an ingest; ``retrieval`` None is one without a document."""
    read, failed = len(library.documents), len(library.unread)
    return [
        f"files     {read + failed:,}",
        f"read      {read:,} ({library.parsed:,} parsed now)",
        f"failed    {failed:,}",
        *(f"  {each.line}" for each in library.unread),
        *_about_documents(library.documents),
        *(_about_chunks(library.documents, retrieval) if retrieval else ()),
        f"seconds   {seconds:.1f}",
    ]


def _about_documents(documents: Sequence[Document]) -> Iterator[str]:
    empty = [document.doc_id for document in documents if not document.text.strip()]
    if empty:
        yield f"empty     {len(empty):,}: {', '.join(map(shown, empty[:5]))}{', …' if len(empty) > 5 else ''}"
    hidden = {each.doc_id: n for each in documents if (n := each.metadata.get("hidden_characters"))}
    if hidden:
        worst = max(hidden, key=lambda doc_id: hidden[doc_id])
        yield (
            f"hidden    {sum(hidden.values()):,} characters of text that nobody would see were left out of "
            f"{len(hidden):,} files, most of {shown(worst)}"
        )
    pages = {each.doc_id: unread for each in documents if (unread := each.metadata.get("unread_pages"))}
    for doc_id, unread in pages.items():
        yield f"damaged   {shown(doc_id)}: pages that cannot be read: {', '.join(map(str, unread[:10]))}"


def _about_chunks(documents: Sequence[Document], retrieval: Retrieval) -> Iterator[str]:
    yield f"chunks    {len(retrieval.chunks):,} ({retrieval.embedder.computed:,} embedded now)"
    yield from _about_duplicates(retrieval)
    yield f"coverage  {coverage(documents, retrieval.cut):.2%} of the text is in chunks"


def _about_duplicates(retrieval: Retrieval) -> Iterator[str]:
    drops = retrieval.settings.near_duplicates
    with retrieval.building():
        # What the index holds has a digest already: hashing all chunks again takes as long as opening the index.
        digest = retrieval.content_digest if retrieval.indexed is retrieval.cut else ""
        found = duplicates(retrieval.cut, drops or USUAL, retrieval.stores, digest)
    if drops:
        yield f"dropped   {len(found):,} near-duplicates of chunks of earlier documents"
    elif found:
        yield (
            f"alike     {len(found):,} near-duplicates of chunks of earlier documents, which are kept; "
            f"--rag-near-duplicates={USUAL:g} drops them"
        )
    for each in found[:MOST_NAMED]:
        yield f"  {shown(each.chunk.chunk_id)} is like {shown(each.like.chunk_id)} ({each.share:.0%})"
    if len(found) > MOST_NAMED:
        yield f"  and {len(found) - MOST_NAMED:,} more"


def coverage(documents: Sequence[Document], chunks: Sequence[Chunk]) -> float:
    """Return the share of all characters that lie in a chunk or are blank; 1 where there are none."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for chunk in chunks:
        insort(spans.setdefault(chunk.doc_id, []), (chunk.start, chunk.end))
    total = sum(len(document.text) for document in documents)
    missed = sum(_missed(document.text, spans.get(document.doc_id, [])) for document in documents)
    return 1 - missed / total if total else 1.0


def _missed(text: str, spans: Sequence[tuple[int, int]]) -> int:
    missed, covered = 0, 0
    for start, end in [*spans, (len(text), len(text))]:
        if start > covered:
            missed += sum(map(len, text[covered:start].split()))
        covered = max(covered, end)
    return missed
