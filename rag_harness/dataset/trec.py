"""Writer of runs and judgements for trec_eval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically

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
