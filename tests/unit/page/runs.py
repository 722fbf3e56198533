"""Small runs on disk, for the tests of the report's sections, and ways to find what a section says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.page.content import (
    Block,
    Cell,
    Code,
    Facts,
    Failures,
    LookedUpQuestions,
    More,
    Prose,
    Section,
    Table,
    Terms,
    Topics,
)
from rag_harness.page.report import read_runs
from rag_harness.page.run import Run
from rag_harness.records.manifest import MANIFEST
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.tables.summary import SUMMARY_FILE
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import write_run
from tests.unit.tables.written_once import written_once

CP, F, AR = "context_precision", "faithfulness", "answer_relevancy"
WHO = Author("embedded", "embedded/alignment", "rev1")
DATE = "2026-01-01T00:00:00+00:00"
BARE: dict[str, Any] = {"retrieved_chunks": [], "candidates": [], "retrieval_time_ms": None, "rerank_time_ms": None}


def rows_of(experiment: str, n: int, found: int, **changes: Any) -> list[ExperimentResult]:
    """Return a row a query; the relevant page is found for the first ``found`` of them."""
    return [_row(experiment, place, "returns" if place < found else "other", changes) for place in range(n)]


def _row(experiment: str, place: int, page: str, changes: Mapping[str, Any]) -> ExperimentResult:
    chunk = make_chunk(f"{page}.md#0")
    given = {"retrieved_chunks": [chunk], "candidates": [{"chunk_id": chunk["chunk_id"], "score": 0.5}]}
    named = {"query_id": f"q{place:02}", "query": f"Question {place}?"}
    return make_row(experiment=experiment, **{**named, **given, **changes})


def scored(rows: Sequence[ExperimentResult], values: Mapping[str, Sequence[float | None]]) -> list[ScoreLine]:
    """Return the judged scores of rows; None is not a verdict."""
    return [
        ScoreLine(measure, 1, row.experiment, row.query_id, row_digest(row), "", WHO, value, "" if value else "silence")
        for measure, found in values.items()
        for row, value in zip(rows, found, strict=True)
    ]


def write_study(output: Path, n: int = 12, **changes: Any) -> Path:
    """Write a run of e1, without retrieval and judgement, and of e2 and e3, which is better by far in CP."""
    return written_once(output, f"study {n} {changes}", lambda folder: _write_study(folder, n, changes))


def _write_study(output: Path, n: int, changes: Mapping[str, Any]) -> None:
    low, high = [0.2 + 0.01 * (place % 5) for place in range(n)], [0.8 + 0.01 * (place % 3) for place in range(n)]
    worse, better = rows_of("e2", n, n // 2, **changes), rows_of("e3", n, n, **changes)
    scores = [
        *scored(worse, {CP: low, F: high, AR: high}),
        *scored(better, {CP: high, F: [*high[:-1], None], AR: low}),
    ]
    bare = rows_of("e1", n, 0, **{**BARE, **changes})
    write_run(output, [*bare, *worse, *better], scores=scores)


def amend(output: Path, **parts: Any) -> None:
    """Change parts of ``run.json``; settings are added to those that it has."""
    manifest = json.loads((output / MANIFEST).read_text())
    settings = {**manifest["settings"], **parts.pop("settings", {})}
    (output / MANIFEST).write_text(json.dumps({**manifest, **parts, "settings": settings}))


def gate(text: str, state: str = "passed", **fields: Any) -> dict[str, Any]:
    """Return a gate as ``summary.json`` has it."""
    usual = {"value": 0.75, "threshold": 0.7, "interval": [0.7, 0.8], "n": 12, "unit": "share", "reason": ""}
    return {"gate": text, "state": state, **usual, **fields}


def summarise(output: Path, *gates: Mapping[str, Any], **more: Any) -> None:
    """Write ``summary.json``."""
    (output / SUMMARY_FILE).write_text(json.dumps({"gates": gates, "run": DATE, **more}))


def read(*outputs: Path) -> list[Run]:
    """Read runs as the report does."""
    return read_runs(outputs)


def blocks_in(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield all blocks, folded ones too."""
    for block in blocks:
        yield block
        if isinstance(block, More):
            yield from blocks_in(block.blocks)


def table_in(section: Section | None, name: str) -> Table:
    """Return the table of that name."""
    assert section is not None
    (found,) = [block for block in blocks_in(section.blocks) if isinstance(block, Table) and block.name == name]
    return found


def cell_in(table: Table, row: str, column: str) -> Cell:
    """Return the cell of the row that begins so, in a column."""
    (found,) = [cells for cells in table.rows if cells[0].text == row]
    return found[list(table.head).index(column)]


def prose_in(section: Section | None) -> list[str]:
    """Return the paragraphs."""
    assert section is not None
    return [block.text for block in blocks_in(section.blocks) if isinstance(block, Prose)]


def facts_in(section: Section | None) -> dict[str, str]:
    """Return the facts by name."""
    assert section is not None
    pairs = [pair for block in blocks_in(section.blocks) if isinstance(block, Facts) for pair in block.pairs]
    return dict(pairs)


def said(section: Section | None) -> str:
    """Return all that a section says, a line a block or row, for snapshots."""
    assert section is not None
    return "\n".join([f"# {section.ident}: {section.title}", *(line for b in section.blocks for line in _lines(b))])


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield f"[{block.name}] {block.caption}"
        yield " | ".join(block.head)
        yield from (" | ".join(_cell(cell) for cell in row) for row in block.rows)
        yield from (f"note: {note}" for note in block.notes)
    elif isinstance(block, Facts):
        yield from (f"{name} = {value}" for name, value in block.pairs)
    elif isinstance(block, Prose):
        yield f"({block.tone or 'plain'}) {block.text}"
    elif isinstance(block, Topics):
        yield from (
            f"{topic.label} ({topic.tone or 'plain'}): {' / '.join(topic.texts)} {topic.trial}" for topic in block.all
        )
    elif isinstance(block, Terms):
        yield from (f"{name}: {meaning}" for name, meaning in block.pairs)
    elif isinstance(block, Code):
        yield from (f"$ {line}" for line in block.lines)
    elif isinstance(block, More):
        yield f"> {block.title}"
        yield from (f"  {line}" for inner in block.blocks for line in _lines(inner))
    elif isinstance(block, LookedUpQuestions):
        yield f"questions: {block.title}"
        yield from map(str, block.shown)
    elif isinstance(block, Failures):
        yield f"failures of {block.experiment}: {len(block.shown)} of {block.total}"
        yield from map(str, block.shown)


def _cell(cell: Cell) -> str:
    marks = f"{'★' * cell.is_best}{f' ({cell.tone})' if cell.tone else ''}{f' -> {cell.trial}' if cell.trial else ''}"
    return cell.text + marks + (f" <{cell.hint}>" if cell.hint else "")
