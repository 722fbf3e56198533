"""The summary of an ingest, for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_harness.dataset.library import Library
from rag_harness.retrieval.about import About, about_documents
from rag_harness.retrieval.duplicates import NEAR_DUPLICATE_SHARE, duplicates
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.shown.terminal import line as shown

if TYPE_CHECKING:
    from rag_harness.engine.distributed.ray_ingest import Ingested

MOST_SUFFIXES = 8
"""How many suffixes of files that are no documents are named."""
MOST_NAMED = 20
"""How many duplicates are named one by one."""


def summary_lines(
    library: Library, retrieval: Retrieval | None, passed_over: Counter[str], seconds: float
) -> list[str]:
    """Return the summary of an ingest; ``retrieval`` is None if there was no document.

    ``passed_over`` has the suffixes of files that are no documents.
    """
    cut = retrieval.cut if retrieval else ()
    refused = retrieval.refused if retrieval else {}
    told = about_documents([each for each in library.documents if each.doc_id not in refused], cut)
    failed = [*(each.line for each in library.unread), *(retrieval.refused_lines if retrieval else ())]
    return [
        *_about_files(told, library.parsed, failed),
        *_about_others(passed_over),
        *(_about_chunks(told, retrieval) if retrieval else ()),
        f"seconds   {seconds:.1f}",
    ]


def spread_lines(found: Ingested, seconds: float) -> list[str]:
    """Return the summary of an ingest by a Ray cluster."""
    return [
        *_about_files(found.about, found.parsed, found.failed),
        *(_about_sent(found) if found.place else ("chunks    0: nothing is written",)),
        f"seconds   {seconds:.1f}",
    ]


def _about_files(told: About, parsed: int, failed: Sequence[str]) -> Iterator[str]:
    yield f"files     {told.documents + len(failed):,}"
    yield f"read      {told.documents:,} ({parsed:,} parsed now)"
    yield f"failed    {len(failed):,}"
    yield from (f"  {line}" for line in failed)
    yield from told.lines()


def _about_others(passed_over: Counter[str]) -> Iterator[str]:
    if passed_over:
        most = sorted(passed_over.items(), key=lambda each: (-each[1], each[0]))[:MOST_SUFFIXES]
        named = [f"{shown(suffix) or 'no suffix'} {count:,}" for suffix, count in most]
        more = ", …" if len(passed_over) > len(most) else ""
        yield f"others    {passed_over.total():,} files that are no documents: {', '.join(named)}{more}"


def _about_chunks(told: About, retrieval: Retrieval) -> Iterator[str]:
    yield f"chunks    {len(retrieval.chunks):,} ({retrieval.embedder.computed:,} embedded now)"
    yield from _about_duplicates(retrieval)
    yield _covered(told)


def _about_sent(found: Ingested) -> Iterator[str]:
    now = "" if found.embedded is None else f" ({found.embedded:,} embedded now)"
    yield f"chunks    {found.chunks:,}{now}"
    yield f"sent      {found.sent:,} to {shown(found.place)}"
    yield _covered(found.about)


def _covered(told: About) -> str:
    return f"coverage  {told.coverage:.2%} of the text is in chunks"


def _about_duplicates(retrieval: Retrieval) -> Iterator[str]:
    drops = retrieval.settings.near_duplicates
    with retrieval.building():
        # An index of all chunks already has their digest. Hashing all chunks again takes as long as opening the index.
        digest = retrieval.content_digest if retrieval.indexed is retrieval.cut else ""
        found = duplicates(retrieval.cut, drops or NEAR_DUPLICATE_SHARE, retrieval.stores, digest)
    if drops:
        yield f"dropped   {len(found):,} near-duplicates of chunks of earlier documents"
    elif found:
        yield (
            f"alike     {len(found):,} near-duplicates of chunks of earlier documents, which are kept; "
            f"--rag-near-duplicates={NEAR_DUPLICATE_SHARE:g} drops them"
        )
    for each in found[:MOST_NAMED]:
        yield f"  {shown(each.chunk.chunk_id)} is like {shown(each.like.chunk_id)} ({each.share:.0%})"
    if len(found) > MOST_NAMED:
        yield f"  and {len(found) - MOST_NAMED:,} more"
