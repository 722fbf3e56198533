"""``rag-harness traces score``: judges what a pipeline said in production, by the spans that were kept of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.commands.answer_judging import Scoring, add_scoring
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.engine.traced_rows import TracedRows

_SETTINGS = ("kb_dir",)
_SHOWN = 5


def traces_score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``traces score``."""
    formats = "OTLP/JSON, or an export of Phoenix or Langfuse"
    parser.add_argument("traces", type=Path, metavar="FILE.jsonl", help=formats)
    parser.add_argument("--rows", type=Path, metavar="ROWS.jsonl", help="write each trace as a row, with its steps")
    add_scoring(parser, _SETTINGS)


def run_traces_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores. Traces that could not be read are named, and the status says so."""
    from tempfile import TemporaryDirectory

    from rag_harness.engine.traced_rows import TracedRows

    scoring = Scoring(chosen, "rag-harness traces score", _SETTINGS)
    with TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.jsonl"
        rows = TracedRows(chosen.traces, scoring.parts)
        rows.write(answers, chosen.rows)
        say(*_read(rows, chosen.traces))
        if not rows.answered:
            return FOUND
        is_measured = scoring.judged(answers)
    return 0 if is_measured and not rows.unread else FOUND


def _read(rows: TracedRows, file: Path) -> list[str]:
    lines = [
        f"{file}: {rows.total} traces, {rows.answered} answered, {rows.failed} failed, {len(rows.unread)} not read"
    ]
    lines += [f"  not read: {trace_id}: {reason}" for trace_id, reason in rows.unread[:_SHOWN]]
    more = len(rows.unread) - _SHOWN
    return [*lines, f"  {more} more were not read"] if more > 0 else lines
