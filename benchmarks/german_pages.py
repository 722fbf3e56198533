"""What German rules change on the German pages of the tests: BM25 with German and with English stems, and the reader.

    python benchmarks/german_pages.py

The pages and the questions were written before anything was measured on them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import LANGUAGE, Case, Chunk, Hit
from rag_harness.data.documents import read_knowledge_base
from rag_harness.data.queries import read_queries
from rag_harness.models.reader import reader_answer
from rag_harness.retrieval.bm25 import Bm25Index

PAGES = Path(__file__).parents[1] / "tests/data/german"


def in_english(chunk: Chunk) -> Chunk:
    """Return the chunk as if it were English."""
    return replace(chunk, metadata={key: value for key, value in chunk.metadata.items() if key != LANGUAGE})


def recall(found: Sequence[Hit], case: Case, k: int) -> float:
    """Return the share of a case's evidence quotes that stand in the first ``k`` chunks."""
    texts = [hit.chunk.text for hit in found[:k]]
    return sum(any(quote.quote in text for text in texts) for quote in case.evidence) / len(case.evidence)


def mrr(found: Sequence[Hit], case: Case) -> float:
    """Return 1 / the rank of the first chunk with evidence."""
    quotes = [quote.quote for quote in case.evidence]
    return next((1 / hit.rank for hit in found if any(quote in hit.chunk.text for quote in quotes)), 0.0)


def asked(question: str, hits: Sequence[Hit], language: str) -> str:
    """Return the embedded reader's answer from the first five chunks."""
    sources = "\n\n".join(f"[Source {hit.rank}: {hit.chunk.doc_id}]\n{hit.chunk.text}" for hit in hits[:5])
    said = reader_answer([{"role": "user", "content": f"{sources}\n\nQuestion: {question}"}])
    return said.answer if language else ""


def main() -> None:
    documents = read_knowledge_base(PAGES)
    chunks = DocumentCollection(documents).chunks
    cases = read_queries(PAGES / "queries.jsonl")
    answerable = [case for case in cases if case.answerable]
    for name, made in (("German", list(chunks)), ("English", [in_english(chunk) for chunk in chunks])):
        index = Bm25Index(lambda made=made: made)  # type: ignore[misc]
        found = {case.query.query_id: index.search(case.query.text, 10) for case in cases}
        for slice_, some in (
            ("direct", [case for case in answerable if case.query_type == "direct"]),
            ("multi-hop", [case for case in answerable if case.query_type != "direct"]),
            ("all", answerable),
        ):
            figures = [
                f"recall@{k} {sum(recall(found[c.query.query_id], c, k) for c in some) / len(some):.3f}"
                for k in (1, 3, 5)
            ]
            first = sum(mrr(found[case.query.query_id], case) for case in some) / len(some)
            print(f"BM25, {name} rules, {slice_} ({len(some)}): {', '.join(figures)}, MRR {first:.3f}")
        for case in cases if name == "German" else ():
            said = asked(case.query.text, found[case.query.query_id], name)
            verdict = "declines" if declines(said) else "answers "
            print(f"  {case.query.query_id:4} {verdict} {said[:110]!r}")


if __name__ == "__main__":
    main()
