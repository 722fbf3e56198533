"""Loading queries, indexing and reranking: the study's knowledge base, as `pytest -m e3` does it.

python benchmarks/retrieval_path.py            needs the extra `local`
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rag_harness.core.settings.loading import load_settings
from rag_harness.data.queries import read_queries
from rag_harness.pipelines.parts import RunParts

ROOT = Path(__file__).parents[1]


def main() -> None:
    cases = read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb")
    queries = [case.query.text for case in cases]
    loading = best(lambda: read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb"))
    print(f"load {len(cases)} queries: {loading:.3f} s")
    with tempfile.TemporaryDirectory() as cache:
        cold = index(cache)
        print(f"index {cold[1]} chunks from nothing: {cold[0]:.1f} s, torch's import included")
        print(f"index {cold[1]} chunks with cached vectors: {index(cache)[0]:.2f} s, qdrant's import excluded")
        rerank(cache, queries)


def index(cache: str) -> tuple[float, int]:
    """Build the index in a fresh set of parts."""
    retrieval = RunParts(load_settings({"cache_dir": cache}, rootdir=ROOT)).retrieval()
    started = time.perf_counter()
    size = len(retrieval.index)
    return time.perf_counter() - started, size


def rerank(cache: str, queries: list[str]) -> None:
    """Time the reranking of 20 candidates, query vectors at hand."""
    retrieval = RunParts(load_settings({"cache_dir": cache}, rootdir=ROOT)).retrieval()
    retrieval.prepare(queries)
    times = []
    for query in queries:
        hits = retrieval.dense.retrieve(query, 20)
        started = time.perf_counter()
        retrieval.reranker().rerank(query, hits)
        times.append((time.perf_counter() - started) * 1000)
    times = sorted(times[1:])
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"rerank 20 candidates: p50 {statistics.median(times):.1f} ms, p95 {p95:.1f} ms")


def best(work: Callable[[], object], runs: int = 5) -> float:
    """Return the shortest of several times, in seconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
