"""``rag-harness judge score``: judges answers of any system, without a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import add_settings, run_closing, settings_said
from rag_harness.shown.terminal import say

_SETTINGS = {
    name: f"as --rag-{name.replace('_', '-')} of a test run"
    for name in ("judge", "judge_model", "judge_base_url", "profile", "mode", "rubrics")
}


def score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``judge score``."""
    lines = "a line an answer: id, question, contexts, answer; ground_truth, gold_pages, quotes where there are any"
    parser.add_argument("answers", type=Path, metavar="ANSWERS.jsonl", help=lines)
    parser.add_argument("-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="a line an answer")
    usual = "faithfulness,answer_relevancy"
    parser.add_argument("--measures", default=usual, metavar="NAMES", help=f"commas between; default: {usual}")
    add_settings(parser, _SETTINGS)


def run_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores."""
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
    check_one_judge(settings, "rag-harness judge score")
    parts = RunParts(settings)
    judge = in_conversations(judge_of(parts), parts)
    tally = run_closing(score_file(chosen.answers, chosen.scores, asked, judge, settings, abstains), parts)
    say(*tally.lines(), f"judged by {judge_said(judge.name, judge.model)}", f"scores: {chosen.scores}")
    return 0 if tally.measured else FOUND
