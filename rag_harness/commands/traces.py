"""``rag-harness traces score``: judges what a pipeline said in production, by the spans that were kept of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import add_settings, run_closing, settings_said
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.engine.traced_rows import TracedRows

_SETTINGS = {
    name: f"as --rag-{name.replace('_', '-')} of a test run"
    for name in ("kb_dir", "judge", "judge_model", "judge_base_url", "profile", "mode", "rubrics")
}
_SHOWN = 5


def score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``traces score``."""
    formats = "lines of OTLP/JSON, or an export of Phoenix or Langfuse"
    parser.add_argument("traces", type=Path, metavar="FILE.jsonl", help=formats)
    parser.add_argument("-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="a line an answer")
    parser.add_argument("--rows", type=Path, metavar="ROWS.jsonl", help="write each trace as a row, with its steps")
    usual = "faithfulness,answer_relevancy"
    parser.add_argument("--measures", default=usual, metavar="NAMES", help=f"commas between; default: {usual}")
    add_settings(parser, _SETTINGS)


def run_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores. Traces that could not be read are named, and the status says so."""
    from tempfile import TemporaryDirectory

    from rag_harness.engine.traced_rows import TracedRows
    from rag_harness.judges.answers.answer_scores import score_file
    from rag_harness.judges.answers.judging_answers import AskedMeasures
    from rag_harness.judges.in_conversation import in_conversations
    from rag_harness.judges.made import judge_of
    from rag_harness.models.api_keys import check_one_judge
    from rag_harness.pipelines.generation import abstains
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.report.summary import judge_said
    from rag_harness.settings.loading import load_settings

    settings = load_settings(settings_said(chosen, _SETTINGS))
    asked = AskedMeasures(chosen.measures.replace(",", " ").split(), settings.path(settings.rubrics))
    check_one_judge(settings, "rag-harness traces score")
    parts = RunParts(settings)
    with TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.jsonl"
        rows = TracedRows(chosen.traces, parts)
        rows.write(answers, chosen.rows)
        say(*_read(rows, chosen.traces))
        if not rows.answered:
            return FOUND
        judge = in_conversations(judge_of(parts), parts)
        tally = run_closing(score_file(answers, chosen.scores, asked, judge, settings, abstains), parts)
    say(*tally.lines(), f"judged by {judge_said(judge.name, judge.model)}", f"scores: {chosen.scores}")
    return 0 if tally.measured and not rows.unread else FOUND


def _read(rows: TracedRows, file: Path) -> list[str]:
    lines = [
        f"{file}: {rows.total} traces, {rows.answered} answered, {rows.failed} failed, {len(rows.unread)} not read"
    ]
    lines += [f"  not read: {trace_id}: {reason}" for trace_id, reason in rows.unread[:_SHOWN]]
    more = len(rows.unread) - _SHOWN
    return [*lines, f"  {more} more were not read"] if more > 0 else lines
