"""The golden suite's cases: from the user's golden set over the knowledge base, or from a public collection."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.dataset.beir import BeirDataset
from rag_harness.dataset.data import Data
from rag_harness.dataset.gold import Gold, resolve
from rag_harness.dataset.golden import GoldenEntry
from rag_harness.errors import SettingsError
from rag_harness.measures.golden_run import RetrievalCase
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.types import Chunk, Query, slices_of


def golden_ids(data: Data) -> list[str]:
    """Return the ids of all entries; reads the golden file and no document."""
    if data.collection is not None:
        return [query.query_id for query in data.collection.queries]
    return [entry.entry_id for entry in data.golden]


def golden_slices(data: Data) -> list[dict[str, str]]:
    """Return the labels of each entry that gates can slice by."""
    if data.collection is not None:
        return [query.place for query in data.collection.queries]
    return [slices_of(entry.metadata) for entry in data.golden]


def golden_cases(data: Data, retrieval: Retrieval) -> list[RetrievalCase]:
    """Return all entries with what counts as found.

    Raises:
        DataError: an expected id resolves to nothing; names every such entry and the nearest ids.
    """
    if data.collection is not None:
        return [_judged(query, data.collection) for query in data.collection.queries]
    gold = resolve(data.golden, retrieval.chunks)
    by_id = {chunk.chunk_id: chunk for chunk in retrieval.chunks}
    return [_case(entry, gold[entry.entry_id], by_id) for entry in data.golden]


def check_cutoff(retrieval: Retrieval) -> None:
    """Refuse a cutoff that is larger than the index: every query would pass.

    Raises:
        SettingsError: there are fewer chunks than the cutoff asks for.
    """
    k, size = retrieval.settings.k, len(retrieval.chunks)
    if k > size:
        raise SettingsError(
            f"k is {k}, but the knowledge base has {size} chunks: everything would be found. "
            f"Choose --rag-k below {size}."
        )


def _judged(query: Query, collection: BeirDataset) -> RetrievalCase:
    relevance = collection.qrels[query.query_id]
    wanted = [doc_id for doc_id, gain in relevance.items() if gain > 0]
    more = [f"{len(wanted) - 3} more"] if len(wanted) > 3 else []
    return RetrievalCase(
        query.query_id,
        query.text,
        relevance,
        expected=(*wanted[:3], *more),
        slices=query.place,
        left_out=collection.left_out(query.query_id),
    )


def _case(entry: GoldenEntry, gold: Gold, chunks: Mapping[str, Chunk]) -> RetrievalCase:
    return RetrievalCase(
        case_id=entry.entry_id,
        query=entry.query,
        relevant=gold.relevance,
        by_chunk=gold.level == "chunk",
        names_of=gold.expected_of,
        expected=entry.expected,
        justification=entry.justification,
        passage=_passage(entry, gold, chunks),
        slices=slices_of(entry.metadata),
    )


def _passage(entry: GoldenEntry, gold: Gold, chunks: Mapping[str, Chunk]) -> str:
    """Return what should have been found: a quote, else the beginning of the first relevant chunk."""
    if entry.evidence:
        return entry.evidence[0]
    first = next((chunk for each, chunk in chunks.items() if each in gold.ids or chunk.doc_id in gold.ids), None)
    return first.text[:200] if first else ""
