"""Reader of a BEIR collection, a folder or a zip: documents, queries and graded judgements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.dataset.beir_files import Folder, lines_by_number, objects, opened, qrels_file, refuse
from rag_harness.types import Case, Document, Query

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class BeirDataset:
    """A collection. ``queries`` are the queries with judgements; ``qrels`` maps query and document to a relevance."""

    documents: list[Document]
    queries: list[Query]
    qrels: dict[str, dict[str, int]]

    def cases(self) -> list[Case]:
        """Return its queries as cases, with their judgements and no other gold."""
        return [
            Case(query, qrels=self.qrels[query.query_id], left_out=self.left_out(query.query_id))
            for query in self.queries
        ]

    def left_out(self, query_id: str) -> frozenset[str]:
        """Return the document that does not count for a query: its namesake, unless it is judged relevant.

        In ArguAna and Quora each query stands in the corpus under its own id. BEIR and MTEB leave it out, too.
        """
        is_gold = self.qrels[query_id].get(query_id, 0) > 0
        return frozenset() if is_gold or query_id not in self._ids else frozenset((query_id,))

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(document.doc_id for document in self.documents)


class _Judgement(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


def read_beir(path: Path, split: str = "test") -> BeirDataset:
    """Read a BEIR folder or zip. The collection may lie in a folder inside.

    The text of a document is title, blank and text, as MTEB embeds it. Judgements of documents that are not in the
    corpus are kept, as in trec_eval.

    Raises:
        DataError: a file is missing or malformed; lists the first 20 problems as ``file:line: …``.
    """
    problems: list[str] = []
    with opened(path) as folder:
        qrels = judgements(qrels_file(folder, split), problems)
        documents = _documents(folder / "corpus.jsonl", problems)
        queries = _queries(folder / "queries.jsonl", qrels, problems)
    refuse(problems or [*_unmatched(path, qrels, documents, queries)])
    return BeirDataset([*documents.values()], [*queries.values()], qrels)


def judgements(file: Folder, problems: list[str]) -> dict[str, dict[str, int]]:
    """Return the relevance of each judged document by query. Lines that cannot be read become problems."""
    qrels: dict[str, dict[str, int]] = {}
    for number, line in lines_by_number(file):
        judgement = _judgement(line)
        if isinstance(judgement, str):
            if number > 1 or not line.startswith(b"query-id"):
                problems.append(f"{file}:{number}: {judgement}")
            continue
        query_id, doc_id, relevance = judgement
        if qrels.setdefault(query_id, {}).setdefault(doc_id, relevance) != relevance:
            problems.append(f"{file}:{number}: {doc_id!r} is judged twice for query {query_id!r}. Remove one line.")
    if not qrels and not problems:
        problems.append(f"{file} holds no judgement: each line is query-id, corpus-id and score, separated by tabs.")
    return qrels


def _judgement(line: bytes) -> _Judgement | str:
    """Return the judgement, or what is wrong with the line. Only tabs separate, so ids may have blanks."""
    try:
        cells = line.decode().split("\t")
    except UnicodeDecodeError:
        return "not UTF-8. Save the file as UTF-8."
    if len(cells) != 3 or not all(cells):
        return f"expected query-id, corpus-id and score, separated by tabs; found {len(cells)} cells in {cells!r:.80}."
    query_id, doc_id, relevance = cells
    if not _WHOLE_NUMBER.fullmatch(relevance):
        return f"relevance {relevance!r:.40} is no whole number. Write 0 for not relevant, 1 or more for relevant."
    return _Judgement(query_id, doc_id, int(relevance))


def _documents(file: Folder, problems: list[str]) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for where, doc_id, row in _rows(file, problems):
        title, text, metadata = row.get("title") or "", row.get("text"), row.get("metadata") or {}
        if doc_id in documents:
            problems.append(f"{where}: _id {doc_id!r} stands already on a line above. Ids name one document each.")
        elif not isinstance(title, str) or not isinstance(text, str) or not isinstance(metadata, dict):
            problems.append(f"{where}: document {doc_id!r} needs a string text; title is a string, metadata an object.")
        else:
            documents[doc_id] = Document(doc_id, f"{title} {text}".strip(), title or doc_id, metadata)
    return documents


def _queries(file: Folder, judged: Collection[str], problems: list[str]) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    for where, query_id, row in _rows(file, problems):
        text = row.get("text")
        if query_id in queries:
            problems.append(f"{where}: _id {query_id!r} stands already on a line above. Ids name one query each.")
        elif query_id not in judged:
            continue
        elif not isinstance(text, str) or not text.strip():
            problems.append(f"{where}: query {query_id!r} has no text. Write it, or remove its judgements.")
        else:
            queries[query_id] = Query(query_id, text)
    return queries


def _rows(file: Folder, problems: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for where, row in objects(file, problems):
        name = row.get("_id")
        if (isinstance(name, str) and name) or (isinstance(name, int) and not isinstance(name, bool)):
            yield where, str(name), row
        else:
            problems.append(f"{where}: _id is missing or no string. Qrels name documents and queries by _id.")


def _unmatched(
    path: Path, qrels: dict[str, dict[str, int]], documents: Collection[str], queries: Collection[str]
) -> Iterator[str]:
    for query_id in qrels:
        if query_id not in queries:
            yield f"{path}: qrels judge query {query_id!r}, which queries.jsonl lacks. Add it there."
    if not any(doc_id in documents for judged in qrels.values() for doc_id in judged):
        yield f"{path}: corpus.jsonl holds none of the documents that qrels judge. Are they of one collection?"
