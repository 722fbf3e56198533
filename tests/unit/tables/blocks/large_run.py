"""Runs of all that a row can be, drawn at random, in many pieces."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case, Evidence
from rag_harness.evaluation.measures import default_measures, measure_named
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.tables import reader
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import case, write_run
from tests.unit.tables.written_once import written_once

CASES, PIECE = 50, 8_000
"""A row is 1 kB or 2, so that a file has some ten pieces."""
_DOCUMENTS = [f"page{number}.md" for number in range(8)]
_TEXTS = ["30 days", "lamps are  30 days", "nothing"]


def write_large(output: Path, seed: int) -> None:
    """Write a run with errors, lost cases, doubles, rows of others, and lines that are none."""
    written_once(output, f"large {seed}", lambda folder: _write_large(folder, seed))


def _write_large(output: Path, seed: int) -> None:
    source = random.Random(seed)
    rows = [each for number in source.sample(range(CASES + 5), CASES) for each in _rows(source, number)]
    ids = [f"q{number}" for number in range(CASES)]
    write_run(
        output,
        rows,
        [_case(source, name) for name in ids],
        selected={"e3": ids[: source.choice([CASES - 5, CASES])]},
        not_run={"e3": source.sample(ids, 3)},
        resumed={"e3": source.sample(ids, 20)},
    )
    file = output / "e3.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:5], b'{"torn\n', b"\n", *lines[5:], b'{"query_id"']))
    manifest = read_manifest(output)
    suites = {"e3": manifest.suites["e3"].model_copy(update={"fingerprints": ["aaaa"]})}
    write_manifest(output, manifest.model_copy(update={"suites": suites}))


def table_in(output: Path) -> SuiteTable:
    """Return the run's table."""
    more = ["total_ms", "recall@7", "faithfulness"]
    return reader.read_tables(output, lambda _: [*default_measures(False, 10), *map(measure_named, more)])["e3"]


def whole_table(output: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteTable:
    """Return the table as it is made where the file is one piece, and nothing is kept."""
    with monkeypatch.context() as patch:
        patch.setattr(reader, "SEGMENT", 1 << 30)
        return table_in(output)


def all_of(table: SuiteTable) -> dict[str, Any]:
    """Return everything that a table says; NaN as text, for it equals nothing."""
    arrays = ("times", "recorded", "new", "outcomes")
    totals = {name: value for name, value in vars(table.totals).items() if name not in arrays}
    return {
        "states": table.states.tolist(),
        "columns": {
            name: (repr(each.values.tolist()), each.absent.tolist(), list(each.reasons), each.unmeasured)
            for name, each in table.columns.items()
        },
        "totals": {**totals, "models": list(table.totals.models.items()), "placed": list(table.totals.placed.items())},
        "times": {stage: repr(times.tolist()) for stage, times in table.totals.times.items()},
        "recorded": table.totals.recorded.tolist(),
        "new": table.totals.new.tolist(),
        "outcomes": table.totals.outcomes.tolist(),
        "categories": table.categories,
    }


def _case(source: random.Random, case_id: str) -> Case:
    gold = {page: source.choice([0, 1, 2]) for page in source.sample(_DOCUMENTS, source.randint(0, 3))}
    quotes = tuple(Evidence(source.choice(_DOCUMENTS), "30 days") for _ in range(source.randint(0, 1)))
    kind, truth = source.choice(["direct", "negative"]), source.choice(["", "30 days"])
    return case(
        case_id,
        qrels=gold,
        query_type=kind,
        ground_truth=truth,
        evidence=quotes,
        answerable=source.random() < 0.8,
        metadata={"topic": source.choice("ab")},
    )


def _rows(source: random.Random, number: int) -> list[ExperimentResult]:
    return [_row(source, number) for _ in range(1 + (source.random() < 0.1))]


def _row(source: random.Random, number: int) -> ExperimentResult:
    hits = [f"{source.choice(_DOCUMENTS)}#chunk_{source.randint(0, 3)}" for _ in range(source.randint(0, 6))]
    call = {"role": "service", "model": "m"}
    placed = {"name": "ask", "ms": 1.0, "calls": [call], "detail": {"placed": {source.choice(["id", "text"]): 2}}}
    changes: dict[str, Any] = {
        "query_id": f"q{number}",
        "retrieved_chunks": [make_chunk(hit, text=source.choice(_TEXTS)) for hit in hits[:3]],
        "candidates": [{"chunk_id": hit, "score": 0.5, "rerank_score": source.random()} for hit in hits],
        "llm_answer": source.choice(["30 days [Source 1].", "lamps", " "]),
        "citations": [source.randint(0, 4)],
        "abstained": source.random() < 0.2,
        "retrieval_time_ms": source.choice([None, source.random()]),
        "total_time_ms": source.random() * 100,
        "cost_usd": source.choice([None, source.random()]),
        "waited_ms": source.random(),
        "retries": source.randint(0, 2),
        "model": source.choice(["", "a", "b", "c"]),
        "confidence": source.choice([None, source.random()]),
        "finished_at": source.choice(["", "some day", f"2026-01-01T00:00:{source.randint(10, 59)}+00:00"]),
        "timings_recorded": source.random() < 0.3,
        "fingerprint": source.choice(["aaaa", "aaaa", "aaaa", "bbbb"]),
        "stages": [placed] * (source.random() < 0.3),
    }
    if source.random() < 0.15:
        why = {"stage": "retrieve", "type": "OSError", "message": "gone " * source.randint(1, 80)}
        changes |= {"llm_answer": "", "status": "error", "error": why}
    return make_row(**changes)
