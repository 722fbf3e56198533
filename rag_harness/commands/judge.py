"""``rag-harness judge score``: answers of any system, judged without a run."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.commands import FOUND

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

T = TypeVar("T")

_OPTIONS = ("judge", "judge_model", "judge_base_url", "profile", "mode")


def score_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``judge score`` takes."""
    lines = "a line an answer: id, question, contexts, answer; ground_truth, gold_pages, quotes where there are any"
    parser.add_argument("answers", type=Path, metavar="ANSWERS.jsonl", help=lines)
    parser.add_argument("-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="a line an answer")
    usual = "faithfulness,answer_relevancy"
    parser.add_argument("--measures", default=usual, metavar="NAMES", help=f"commas between; default: {usual}")
    for name in _OPTIONS:
        flag = name.replace("_", "-")
        parser.add_argument(f"--{flag}", dest=name, help=f"as --rag-{flag} of a test run")


def run_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and say how they came out."""
    from rag_harness.judges.answers.judged import Asked
    from rag_harness.judges.answers.scored import score_file
    from rag_harness.judges.made import judge_of
    from rag_harness.models.keys import check_judge
    from rag_harness.pipelines.generation import abstains
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.report.scorecard import judge_said
    from rag_harness.settings.loading import load_settings

    settings = load_settings({name: said for name in _OPTIONS if (said := getattr(chosen, name)) is not None})
    asked = Asked(chosen.measures.replace(",", " ").split())
    check_judge(settings)
    parts = RunParts(settings)
    judge = judge_of(parts)
    tally = _closing(score_file(chosen.answers, chosen.scores, asked, judge, settings, abstains), parts)
    print("\n".join([*tally.lines(), f"judged by {judge_said(judge.name, judge.model)}", f"scores: {chosen.scores}"]))
    return 0 if tally.measured else FOUND


def _closing(work: Coroutine[Any, Any, T], parts: RunParts) -> T:
    """Return what ``work`` returns; connections are closed on its loop, and what waits to be kept is written."""

    async def closed() -> T:
        try:
            return await work
        finally:
            await parts.endpoints.aclose()

    try:
        return asyncio.run(closed())
    finally:
        parts.flush()
