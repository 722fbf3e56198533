"""BEIR collections, a folder or a zip, and runs and judgements as files for trec_eval."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import Case, Document, Query

# The files of a BEIR folder or zip, as streams of rows; a zip is never unpacked to disk.

Folder: TypeAlias = "Path | zipfile.Path"

_SHAPE = "A BEIR collection is corpus.jsonl, queries.jsonl and qrels/test.tsv"
_SHOWN = 20
"""Most problems that an error lists. A corpus has millions of lines, and all may have the same mistake."""
UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
"""Errors of a damaged zip. RuntimeError is an encrypted zip; its subclass NotImplementedError a rare compression."""


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Yield the folder with corpus.jsonl: ``path`` or the root of the zip, or a folder inside.

    Raises:
        DataError: the folder does not exist, or a file in it cannot be read.
    """
    if not path.exists():
        raise DataError(f"No folder or zip {path}. {_SHAPE}, in a folder or a zip.")
    try:
        if path.is_dir():
            yield _with_corpus(path, path)
        else:
            with zipfile.ZipFile(path) as archive:
                yield _with_corpus(zipfile.Path(archive), path)
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read: {error}. Name a BEIR folder, or a zip that is whole.") from error


def _with_corpus(top: Folder, path: Path) -> Folder:
    # A Mac adds these to zips.
    inner = sorted((each for each in top.iterdir() if each.name != "__MACOSX" and each.is_dir()), key=str)
    for folder in (top, *inner):
        if (folder / "corpus.jsonl").is_file():
            return folder
    raise DataError(f"No corpus.jsonl in {path}, nor in a folder inside. {_SHAPE}.")


def qrels_file(folder: Folder, split: str) -> Folder:
    """Return the file of a split's judgements. For an unknown split, the DataError names the existing ones."""
    qrels = folder / "qrels"
    file = qrels / f"{split}.tsv"
    if file.is_file():
        return file
    names = sorted(each.name for each in qrels.iterdir()) if qrels.is_dir() else []
    splits = ", ".join(name.removesuffix(".tsv") for name in names if name.endswith(".tsv"))
    found = f"Splits there: {splits}." if splits else "Without judgements nothing can be scored."
    raise DataError(f"No {file}. {_SHAPE}. {found}")


def lines_by_number(file: Folder) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with numbers from 1, without line ends and byte order mark."""
    if not file.is_file():
        raise DataError(f"No {file}. {_SHAPE}.")
    # A zip member splits lines in Python, which is slow; a BufferedReader around it does it in C.
    with file.open("rb") as member, io.BufferedReader(cast("Any", member)) as stream:
        for number, line in enumerate(stream, 1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if content.strip():
                yield number, content.rstrip(b"\r\n")


def objects(file: Folder, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object on each line of a JSONL file, with its place. Other lines become problems."""
    for number, line in lines_by_number(file):
        where = f"{file}:{number}"
        try:
            row = json.loads(line.decode())
        except UnicodeDecodeError:
            problems.append(f"{where}: not UTF-8. Save the file as UTF-8.")
        except (ValueError, RecursionError) as error:
            problems.append(f"{where}: no JSON: {error}. Each line is one object.")
        else:
            if isinstance(row, dict):
                yield where, row
            else:
                problems.append(f"{where}: expected an object.")


def refuse(problems: Sequence[str]) -> None:
    """Raise a DataError with the first problems, if there are any."""
    if problems:
        more = [f"… and {len(problems) - _SHOWN} more."] if len(problems) > _SHOWN else []
        raise DataError("\n".join([*problems[:_SHOWN], *more]))


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

        In ArguAna and Quora the corpus has each query under its own id. BEIR and MTEB leave it out, too.
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
    """Return the judgement, or the fault of the line. Only tabs separate, so ids may have blanks."""
    try:
        cells = line.decode().split("\t")
    except UnicodeDecodeError:
        return "not UTF-8. Save the file as UTF-8."
    if len(cells) != 3 or not all(cells):
        return f"expected query-id, corpus-id and score, separated by tabs; found {len(cells)} cells in {cells!r:.80}."
    query_id, doc_id, relevance = cells
    if not _WHOLE_NUMBER.fullmatch(relevance):
        return f"relevance {relevance!r:.40} is not a whole number. Write 0 for not relevant, 1 or more for relevant."
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


_LONGEST = 2**24


def write_run(file: Path, run: Mapping[str, Sequence[str]], tag: str = "rag_harness") -> None:
    """Write rankings, best first, as lines ``query Q0 document rank score tag``.

    A document that is twice in a ranking is written at its first rank only, because trec_eval refuses duplicates. A
    query without documents has no line; ``trec_eval -c`` counts it as 0.

    Raises:
        DataError: an id or the tag is empty or has white space, or a ranking is longer than 2**24. Nothing is written.
    """
    unique = {query_id: list(dict.fromkeys(ranked)) for query_id, ranked in run.items()}
    _refuse(file, {"tag": [tag], "query": unique, "document": (each for ids in unique.values() for each in ids)})
    long = [query_id for query_id, ranked in unique.items() if len(ranked) > _LONGEST]
    if long:
        raise DataError(f"{file}: query {long[0]!r} has more than {_LONGEST} documents. Export fewer: --rag-k.")
    # trec_eval sorts by score as float32 and breaks ties by id, which would change the retriever's order. So the
    # scores count down to 1 in whole numbers, which are exact in float32 up to 2**24.
    lines = (
        f"{query_id} Q0 {doc_id} {rank} {len(ranked) + 1 - rank} {tag}\n"
        for query_id, ranked in unique.items()
        for rank, doc_id in enumerate(ranked, 1)
    )
    write_atomically(file, "".join(lines).encode())


def write_qrels(file: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgements as lines ``query 0 document relevance``.

    Raises:
        DataError: an id is empty or has white space. Nothing is written.
    """
    _refuse(file, {"query": qrels, "document": (doc_id for judged in qrels.values() for doc_id in judged)})
    lines = (
        f"{query_id} 0 {doc_id} {relevance}\n"
        for query_id, judged in qrels.items()
        for doc_id, relevance in judged.items()
    )
    write_atomically(file, "".join(lines).encode())


def _refuse(file: Path, names: Mapping[str, Iterable[str]]) -> None:
    bad = {(kind, name): None for kind, each in names.items() for name in each if name.split() != [name]}
    problems = [
        f"{file}: {kind} {name!r} is empty or has white space, which separates the columns of a TREC file. Rename it."
        for kind, name in bad
    ]
    if problems:
        raise DataError("\n".join(problems))
