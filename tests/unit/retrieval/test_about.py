"""The summary of ingested documents."""

from __future__ import annotations

from rag_harness.core.types import Chunk, Document
from rag_harness.retrieval.ingest import IngestSummary, about_documents


def test_what_is_said_of_some_documents_and_of_others_is_said_of_all() -> None:
    documents = [
        Document("a", "some text that is cut", "a", {"hidden_characters": 3}),
        Document("b", "", "b"),
        Document("c", "more of it", "c", {"hidden_characters": 9, "unread_pages": [2, 4]}),
        Document("d", " ", "d", {"hidden_characters": 9}),
    ]
    chunks = [Chunk("a#0", "a", "some", 0, 4), Chunk("c#0", "c", "more of it", 0, 10)]
    whole = about_documents(documents, chunks)
    parts = [about_documents([each], [chunk for chunk in chunks if chunk.doc_id == each.doc_id]) for each in documents]
    assert sum(parts, IngestSummary()) == whole
    assert list(whole.lines()) == [
        "empty     2: b, d",
        "hidden    21 characters of text that nobody would see were left out of 3 files, most of c",
        "damaged   c: pages that cannot be read: 2, 4",
    ]
    assert f"{whole.coverage:.4f}" == f"{1 - 13 / 32:.4f}"
