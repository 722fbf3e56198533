"""A small run with all that a table of trials must hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_harness.core.types import Case, Query
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import ScoreLine
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import case, golden_row, write_run
from tests.unit.tables.test_judged import AR, CP, F, scored
from tests.unit.tables.written_once import written_once

NASTY = 'two\nlines, "quoted"\r\nand\ta tab, ünï, 日本, \u202e'
SURROGATE = "half \ud83d a pair"
ANSWERS = ["30 days.", NASTY, SURROGATE, "=HYPERLINK(1)", "- a list\n- of two", "'tis", "NA", "＝1+1", "nul \0 inside"]


def answers(*texts: str) -> list[ExperimentResult]:
    """Return a row an answer, with numbers that no short decimal holds."""
    return [
        make_row(query_id=f"q{n}", llm_answer=text, total_time_ms=n + 1 / 3, cost_usd=1e-7 / (n + 3))
        for n, text in enumerate(texts)
    ]


def judged(rows: Sequence[ExperimentResult]) -> list[ScoreLine]:
    """Return scores of the measures that make the study's composites."""
    return [scored(row, name, 1 / (n + 3)) for n, row in enumerate(rows) for name in (CP, F, AR)]


def write_output(folder: Path) -> Path:
    """Write a run: judged answers, a failure, a lost case, and the golden suite on data of its own."""
    return written_once(folder, "trials", _write_output)


def _write_output(folder: Path) -> None:
    rows = [*answers(*ANSWERS), failed_row(query_id="failed")]
    gold = [("30 days", {"returns.md": 1}), ("", {"other.md": 1})]
    cases = [
        Case(Query(row.query_id, "What?"), "direct", *gold[n % 2], metadata={"topic": f"t{n % 2}"})
        for n, row in enumerate(rows)
    ]
    write_run(folder, rows, [*cases, case("lost", "a")], scores=judged(rows[:-2]))
    suites = read_manifest(folder).suites
    write_run(folder, [golden_row("g1", ["b", "\0hit 2", "a"])], [case("g1", "a")])
    manifest = read_manifest(folder)
    write_manifest(folder, manifest.model_copy(update={"suites": {**manifest.suites, **suites}}))
