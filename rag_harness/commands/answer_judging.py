"""Shared by commands that judge answers: their options, and the judging."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands.with_settings import add_settings, run_closing, settings_of_suite, settings_said
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

_SETTINGS = ("judge", "judge_model", "judge_base_url", "profile", "mode", "project")
_OWN = {"judge_base_url": "OpenAI-compatible endpoint of the judge; default: that of the profile's role judge"}
_USUAL = "faithfulness,answer_relevancy"


def add_scoring(parser: argparse.ArgumentParser, settings: Iterable[str] = ()) -> None:
    """Declare the file of scores, the measures, and the settings of judging with those of ``settings`` before them."""
    parser.add_argument(
        "-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="file to write, a line an answer"
    )
    parser.add_argument(
        "--measures",
        default=_USUAL,
        metavar="NAMES",
        help=f"measures that are judged, with commas between; default: {_USUAL}",
    )
    names = (*settings, *_SETTINGS)
    add_settings(parser, {name: f"as --rag-{name.replace('_', '-')} of a test run" for name in names} | _OWN)


class Scoring:
    """What judges answers as the command line says.

    Args:
        chosen: the options of ``add_scoring``.
        command: its name, for messages.
        settings: the settings beside those of judging.

    Raises:
        SettingsError: a setting, a measure or the judge cannot be used.
    """

    def __init__(self, chosen: argparse.Namespace, command: str, settings: Iterable[str] = ()) -> None:
        from rag_harness.judges.answers.judging_answers import AskedMeasures
        from rag_harness.judges.ready import check_one_judge
        from rag_harness.pipelines.parts import RunParts

        self._settings = settings_of_suite(settings, settings_said(chosen, (*settings, *_SETTINGS)))
        self._scores = chosen.scores
        named = chosen.measures.replace(",", " ").split()
        self._asked = AskedMeasures(named, self._settings.folder("rubrics"))
        check_one_judge(self._settings, command)
        self.parts: RunParts = RunParts(self._settings)

    def judged(self, answers: Path) -> bool:
        """Judge a file of answers, print what came of it, and return whether anything was measured."""
        from rag_harness.judges.answers.answer_scores import score_file
        from rag_harness.judges.in_conversation import in_conversations
        from rag_harness.judges.made import judge_of
        from rag_harness.judges.traits import traits_of
        from rag_harness.report.summary import judge_said
        from rag_harness.words.abstention import declines

        judge = in_conversations(judge_of(self.parts), self.parts)
        own = self._settings.refusals
        work = score_file(
            answers, self._scores, self._asked, judge, self._settings, lambda answer: declines(answer, own)
        )
        tally = run_closing(work, self.parts)
        say(
            *tally.lines(),
            f"judged by {judge_said(judge.name, judge.model, traits_of(self._settings).asks_model)}",
            f"scores: {self._scores}",
        )
        return bool(tally.measured)
