"""How long the textbook assistant takes: its first stage at 100,000 chunks, and a whole answer.

    python benchmarks/textbook_scale.py [--chunks N] [--rounds N] [--cache FOLDER]

Needs the extra `local`. The index is that of ``t1`` in the embedded profile: the book's own chunks, and vectors of
random directions up to the number asked for, found by an HNSW graph as any index from 20,000 chunks on. 200 queries,
the book's and then the study's, are asked one at a time for ten chunks: first each with its vector to be computed,
then each again with its vector at hand. Answers are those of ``t1`` over the book alone, one at a time, in mode live:
nothing recorded is read. Each round asks all of it; the load is what the system says at that moment.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np
from side_by_side import show

from rag_harness.core.protocols import Index
from rag_harness.core.registry import resolve
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Chunk, Query
from rag_harness.data.queries import read_queries
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.builder import Retrieval
from rag_harness.studies.textbook import CANDIDATES, Design

ROOT = Path(__file__).parents[1]
BOOK, STUDY = ROOT / "data/textbook", ROOT / "data/kb"
QUERIES, SEED = 200, 7
GOALS = {"search": 100.0, "with the query's embedding": 100.0, "answer": 5_000.0}


class Enlarged(Retrieval):
    """The retrieval ``book``, with chunks of random directions beside its own."""

    def __init__(self, book: Retrieval, size: int) -> None:
        super().__init__(book.spec, lambda: (), book.settings, book.stores, book.embedder)
        self._book = book
        self._others = [Chunk(f"other#{n}", "other", f"other {n}") for n in range(size - len(book.chunks))]

    @cached_property
    def chunks(self) -> list[Chunk]:
        return [*self._book.chunks, *self._others]

    @cached_property
    def indexed(self) -> list[Chunk]:
        return [*self._book.indexed, *self._others]

    @cached_property
    def index(self) -> Index:
        own = self.embedder.embed_documents([chunk.text for chunk in self._book.indexed])
        made = np.random.default_rng(SEED).normal(size=(len(self._others), own.shape[1]))
        others = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        index: Index = resolve("indexes", self.spec.index)(self)
        index.upsert(self.indexed, np.concatenate([own, others]))
        return index


def milliseconds(work: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Return what ``work`` took of each text, one at a time."""
    took = []
    for text in texts:
        started = perf_counter()
        work(text)
        took.append((perf_counter() - started) * 1000)
    return took


def one_round(parts: RunParts, retrieval: Retrieval, number: int) -> dict[str, list[float]]:
    """Time searches and answers. Blanks behind a query make a text of the same tokens that no store has a vector of."""
    blanks = " " * (2 * number + os.getpid() % 997)
    own, all_queries = texts_of(BOOK), [*texts_of(BOOK), *texts_of(STUDY)]
    searched = [query + blanks for query in islice(all_queries, QUERIES)]
    answered = [f"{query} {blanks}" for query in own]
    pipeline = experiment("t1", parts).pipeline

    def search(text: str) -> object:
        return retrieval.dense.retrieve(text, CANDIDATES)

    def answer(text: str) -> object:
        return asyncio.run(pipeline.answer(Query("q", text)))

    answer(f"{own[0]}!"), search(f"{own[0]}!")  # weights, graph and reader are loaded now
    computed = milliseconds(search, searched)
    return {
        "search": milliseconds(search, searched),
        "with the query's embedding": computed,
        "answer": milliseconds(answer, answered),
    }


def texts_of(folder: Path) -> list[str]:
    return [case.query.text for case in read_queries(folder / "queries.jsonl", folder)]


def main() -> None:
    """Build once, print a table a round."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--chunks", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--cache", type=Path, help="keeps vectors and index; default: a temporary folder")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked.cache.absolute() if asked.cache else Path(folder), asked.chunks, asked.rounds)


def measure(cache: Path, chunks: int, rounds: int) -> None:
    own = {"kb_dir": str(BOOK), "cache_dir": str(cache), "profile": "embedded", "mode": "live"}
    parts = RunParts(load_settings(own, rootdir=ROOT))
    book = parts.retrieval(Design().spec(parts))
    started, retrieval = perf_counter(), Enlarged(book, chunks)
    size, how = len(retrieval.index), "comparing all" if getattr(retrieval.index, "compares_all", True) else "by graph"
    parts.flush()
    print(
        f"{len(book.chunks)} chunks of the book in {len(book.indexed)} windows, {len(retrieval.chunks):,} chunks in all"
    )
    print(f"{size:,} vectors, {how}; ready after {perf_counter() - started:.0f} s")
    for number in range(1, rounds + 1):
        before = os.getloadavg()[0]
        took = one_round(parts, retrieval, number)
        report(number, took, (before, os.getloadavg()[0]))


def report(number: int, took: dict[str, list[float]], load: tuple[float, float]) -> None:
    rows = []
    for name, times in took.items():
        p50, p95 = np.percentile(times, [50, 95])
        verdict = "met" if p95 < GOALS[name] else "missed"
        rows.append(
            [name, str(len(times)), f"{p50:.1f}", f"{p95:.1f}", f"{max(times):.1f}", f"{GOALS[name]:g}: {verdict}"]
        )
    title = f"round {number}, {os.cpu_count()} cores, load {load[0]:.1f} before and {load[1]:.1f} after: milliseconds"
    show(title, ["", "asked", "p50", "p95", "most", "goal of p95"], rows)


if __name__ == "__main__":
    main()
