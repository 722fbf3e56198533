"""``rag-harness judge score``: judges answers of any system, without a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.commands.answer_judging import Scoring, add_scoring
from rag_harness.judges.unseen import UNSEEN


def score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``judge score``."""
    lines = "a line an answer: id, question, contexts, answer; ground_truth, gold_pages, quotes where there are any"
    parser.add_argument("answers", type=Path, metavar="ANSWERS.jsonl", help=lines)
    add_scoring(parser)
    parser.epilog = f"The embedded judge, default of the embedded profile, is no LLM: {UNSEEN}"


def run_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores."""
    return 0 if Scoring(chosen, "rag-harness judge score").judged(chosen.answers) else FOUND
