"""Time and memory of the tables for notebooks: a run of 20,000 judged trials as CSV, as Parquet, as frames.

    python benchmarks/frames.py [TRIALS]

Two experiments share the trials; each row has five chunks of 1,000 characters and 20 candidates. Each format has a
process of its own, imports included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rag_harness.core.types import Case, Query
from rag_harness.records.cases import stored_case, write_cases
from rag_harness.records.manifest import RunManifest, SuiteRecord, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import SCORES, Author, ScoreLine, row_digest

TRIALS = 20_000
EXPERIMENTS = ("e2", "e3")
WHO = Author("embedded", "embedded/alignment", "1")
JUDGED = ("context_precision", "faithfulness", "answer_relevancy", "factuality")
FORMATS = {
    "csv": "write_csv(output, file)",
    "parquet": "write_parquet(output, file)",
    "pandas": "load_results(output, 'pandas')",
    "polars": "load_results(output, 'polars')",
    "records": "load_results(output, 'records')",
}
_TIMED = """
import resource, time
began = time.perf_counter()
from pathlib import Path
from rag_harness.tables.trials import load_results, write_csv, write_parquet
output, file = Path({output!r}), Path({file!r})
{call}
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write_run(output: Path, trials: int) -> None:
    """Write rows, scores, cases and manifest."""
    ids = [f"q{n}" for n in range(trials // len(EXPERIMENTS))]
    (output / SCORES).mkdir()
    write_cases(output, "queries", (stored_case(_case(query_id)) for query_id in ids))
    for name in EXPERIMENTS:
        rows = (_row(name, query_id) for query_id in ids)
        with (output / f"{name}.jsonl").open("w") as file, (output / SCORES / f"{name}.jsonl").open("wb") as scores:
            for row in rows:
                file.write(row.line())
                scores.writelines(score.line() for score in _scores(row))
    record = SuiteRecord(data="queries", file="", fingerprints=["f"], total=len(ids), selected="all")
    judged = {"judged": [*JUDGED, "g_mean", "hri"], "authors": [(WHO.judge, WHO.model, WHO.revision)]}
    suites = {name: record.model_copy(update={"file": f"{name}.jsonl", **judged}) for name in EXPERIMENTS}
    write_manifest(output, RunManifest(date="2026-01-01T00:00:00+00:00", settings={"k": 10}, suites=suites))


def _case(query_id: str) -> Case:
    metadata = {"topic": f"t{len(query_id)}", "difficulty": "hard"}
    return Case(Query(query_id, f"What is {query_id}?"), ground_truth="30 days", qrels={"d3": 1}, metadata=metadata)


def _row(experiment: str, query_id: str) -> ExperimentResult:
    where = {"filename": "d", "section": "Returns"}
    chunks = [
        {"chunk_id": f"d{n}#1", "text": f"{query_id} " + "word " * 199, "score": 0.5, "metadata": where}
        for n in range(5)
    ]
    candidates = [{"chunk_id": f"d{n}#1", "score": 0.5} for n in range(20)]
    text = json.dumps(
        {
            "query_id": query_id, "experiment": experiment, "query": f"What is {query_id}?", "query_type": "direct",
            "retrieved_chunks": chunks, "candidates": candidates, "llm_answer": "30 days. " * 20, "raw_output": "",
            "citations": [1, 3], "invalid_citations": [], "abstained": False, "reasoning_steps": None,
            "ground_truth": "30 days", "context_reference": ["d3"], "metadata": {}, "retrieval_time_ms": 2.1,
            "rerank_time_ms": None, "llm_time_ms": 512.3, "ttft_ms": 80.2, "total_time_ms": 514.4,
            "usage": {"prompt_tokens": 900, "completion_tokens": 60, "calls": 1}, "cost_usd": 0.0003, "model": "m",
            "profile": "embedded", "mode": "auto", "dry_run": False, "status": "ok", "error": None, "fingerprint": "f",
        }
    )  # fmt: skip
    return ExperimentResult.model_validate_json(text)


def _scores(row: ExperimentResult) -> Iterator[ScoreLine]:
    for n, name in enumerate(JUDGED):
        yield ScoreLine(name, 1, row.experiment, row.query_id, row_digest(row), "", WHO, 1 / (n + 1))


def main() -> None:
    """Write the run once and print a line a format."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        output.mkdir()
        write_run(output, trials)
        rows = sum(file.stat().st_size for file in output.glob("*.jsonl"))
        print(f"{trials:,} trials, {rows / 1e6:.0f} MB of rows, {os.cpu_count()} cores")
        for name, call in FORMATS.items():
            file = Path(folder) / f"trials.{name}"
            code = _TIMED.format(output=str(output), file=str(file), call=call)
            seconds, mb = subprocess.check_output([sys.executable, "-c", code], text=True).split()
            size = f", {file.stat().st_size / 1e6:.1f} MB" if file.exists() else ""
            print(f"{name}: {float(seconds):.1f} s, {float(mb):.0f} MB of memory at most{size}")


if __name__ == "__main__":
    main()
