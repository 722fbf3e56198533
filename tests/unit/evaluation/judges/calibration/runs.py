"""Runs that were judged, and labels of them, for the tests of calibration."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.records.manifest import QUERIES, RunManifest, SuiteRecord, write_manifest
from rag_harness.records.scores import Author, ScoreLine, row_digest
from tests.unit.rows import make_row

JUDGE = Author("embedded", "minilm", "1a2b")


def human_of(number: int, rng: random.Random) -> tuple[int, float]:
    """Return what people say of an answer and what a judge that follows them says."""
    human = int(rng.random() < 0.75)
    return human, min(1.0, max(0.0, 0.5 * human + 0.2 + rng.gauss(0, 0.15)))


def write_judged(
    output: Path,
    experiments: Sequence[str] = ("e3",),
    n: int = 60,
    authors: Sequence[Author] = (JUDGE,),
    **changes: Any,
) -> dict[tuple[str, str], int]:
    """Write rows and scores of a run; return what people would say of each answer."""
    rng = random.Random(4)
    truth: dict[tuple[str, str], int] = {}
    for name in experiments:
        pages = [{"context_reference": (f"p{i}.md",), **changes} for i in range(n)]
        rows = [
            make_row(experiment=name, query_id=f"q{i}", query=f"Question {i}?", **page) for i, page in enumerate(pages)
        ]
        write_lines(output / f"{name}.jsonl", (json.loads(row.text) for row in rows))
        scored = []
        for number, row in enumerate(rows):
            truth[name, row.query_id], value = human_of(number, rng)
            scored += [score(name, row.query_id, value, row_digest(row), author) for author in authors]
        (output / "scores").mkdir(exist_ok=True)
        (output / "scores" / f"{name}.jsonl").write_bytes(b"".join(line.line() for line in scored))
    write_run_file(output, dict.fromkeys(experiments, authors))
    return truth


def score(
    experiment: str, query_id: str, value: float | None, row: str, author: Author = JUDGE, **more: Any
) -> ScoreLine:
    """Return a score of faithfulness."""
    return ScoreLine("faithfulness", 1, experiment, query_id, row, "", author, value, **more)


def write_run_file(output: Path, authors: Mapping[str, Sequence[Author]]) -> None:
    """Write run.json: whose scores are of the run."""
    suites = {
        name: SuiteRecord(
            data=QUERIES,
            file=f"{name}.jsonl",
            fingerprints=["aaaa"],
            total=1,
            selected="all",
            authors=[(each.judge, each.model, each.revision) for each in those],
        )
        for name, those in authors.items()
    }
    write_manifest(output, RunManifest(date="2026-01-01T00:00:00+00:00", settings={}, suites=suites))


def write_lines(file: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON Lines; return the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file
