"""``rag-harness explain``: finds out why trials of a run failed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rag_harness.derived.attribution.bench import nobody
from rag_harness.derived.attribution.causes_text import cause_in_full, cause_lines, label_lines
from rag_harness.derived.attribution.explain import Explainer
from rag_harness.derived.attribution.failing import WORST
from rag_harness.derived.attribution.whole_trial import (
    broken_lines,
    chat_lines,
    disagreement_lines,
    ended_said,
    row_of_trial,
    trial_lines,
    trial_named,
)
from rag_harness.derived.local_run import bench_of, running, settings_of
from rag_harness.measures.ground_truth import rightness
from rag_harness.report.explained_misses import every_miss, one_question
from rag_harness.report.left_nothing import said_of_last_run
from rag_harness.results.manifest import RunManifest, read_manifest
from rag_harness.results.row import ExperimentResult
from rag_harness.shown.terminal import say
from rag_harness.types import GOLDEN, Case, Query

MODES = ("auto", "replay", "record", "live")


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``explain``."""
    parser.add_argument(
        "output", type=Path, nargs="?", default=Path("output"), help="output folder of a run; default: output"
    )
    parser.add_argument("trial", nargs="?", default="", metavar="TRIAL", help="only this trial, whole: e3-q_direct_001")
    parser.add_argument("--rows-only", action="store_true", help="run nothing again: what rows and gold tell")
    mode = "which models may be asked, as --rag-mode of a test run; default: auto, which costs nothing"
    parser.add_argument("--mode", choices=MODES, default="auto", help=mode)
    parser.add_argument("--budget", type=float, default=0.0, metavar="USD", help="most USD that calls may cost")
    worst = f"trials of an experiment to look at beside failed categories; default: {WORST}"
    parser.add_argument("--worst", type=int, default=WORST, metavar="N", help=worst)
    parser.add_argument("--review", action="store_true", help="ask you of each cause whether it is right, and keep it")
    parser.add_argument("--by", default="", metavar="NAME", help="who reviews; default: the name of your login")


def run_explain(chosen: argparse.Namespace) -> int:
    """Explain the run, or one trial of it; return the exit status."""
    if chosen.review:
        from rag_harness.derived.attribution.review import review

        return review(chosen.output, chosen.by)
    manifest = read_manifest(chosen.output)
    say(*said_of_last_run(chosen.output))
    if looked_up := _of_golden(chosen, manifest):
        say(*looked_up)
        return 0
    row = row_of_trial(chosen.output, manifest, chosen.trial) if chosen.trial else None
    if chosen.trial and row is None:
        chosen.trial = trial_named(manifest, chosen.trial)
        row = row_of_trial(chosen.output, manifest, chosen.trial)
    if row is None and (ended := ended_said(manifest, chosen.trial)):
        say(ended)
        return 0
    chat = chat_lines(row, manifest) if row else []
    if row and not row.ok:
        say(*chat, *trial_lines(row))
        return 0
    with _explainer(chosen) as explainer:
        if not chosen.trial:
            errors, causes = explainer.errors, explainer.every()
            say(*errors)
            if causes or not errors:
                say(*cause_lines(causes, str(chosen.output), answers=explainer.answers))
            say(*every_miss(chosen.output, manifest))
            return 0
        found = explainer.one(chosen.trial)
        figures = "" if found else explainer.figures(chosen.trial)
    broken = broken_lines(chosen.output, manifest, row) if row else []
    apart = disagreement_lines(chosen.output, manifest, row) if row else []
    is_right = f"{chosen.trial} did not fail: {_why_right(row)}."
    unchecked = f"{chosen.trial} did not fail, and not all that is expected of it could be checked."
    right = [unchecked if broken else is_right, *(trial_lines(row) if row else ())]
    right += label_lines("measures", figures) if figures else []
    say(*chat, *(cause_in_full(found) if found else right), *broken, *apart)
    return 0


def _why_right(row: ExperimentResult | None) -> str:
    case = Case(Query("", row.query), ground_truth=row.ground_truth) if row else None
    found = rightness(case, row.llm_answer, row.abstained) if row and case else None
    if row is None or found is None or (row.ground_truth and found.right):
        return "its answer carries the gold"
    if row.ground_truth and found.value is not None:
        return "its expectations pass"
    if row.ground_truth:
        return "nothing that was checked is wrong. Whether its answer says the ground truth, the rule cannot tell"
    if row.context_reference:
        return "nothing that was checked is wrong. Without a ground truth nobody knows whether its answer is right"
    return "it has no gold, and keeps to what is expected, if anything is"


def _of_golden(chosen: argparse.Namespace, manifest: RunManifest) -> list[str]:
    """Return what is to be said of the golden suite alone; empty where an experiment is asked about."""
    if chosen.trial:
        return one_question(chosen.output, manifest, chosen.trial)
    return every_miss(chosen.output, manifest) if set(manifest.suites) == {GOLDEN} else []


@contextmanager
def _explainer(chosen: argparse.Namespace) -> Iterator[Explainer]:
    manifest = read_manifest(chosen.output)
    if chosen.rows_only:
        yield Explainer(chosen.output, nobody(), worst=chosen.worst)
        return
    from rag_harness.pipelines.parts import RunParts

    as_run = settings_of(manifest.settings, {})
    parts = RunParts(replace(as_run, mode=chosen.mode, budget=chosen.budget, overwrite=False))
    with running(chosen.output, parts) as runs:
        yield Explainer(chosen.output, bench_of(parts, as_run), runs, chosen.worst)
