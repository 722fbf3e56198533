"""The commands about runs: rag-harness compare, power, explain and tune."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import columns, say
from rag_harness.core.types import GOLDEN, Case, Query
from rag_harness.diagnosis.cause_lines import (
    broken_lines,
    cause_in_full,
    cause_lines,
    chat_lines,
    disagreement_lines,
    ended_said,
    label_lines,
    row_of_trial,
    trial_lines,
    trial_named,
)
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.failures import WORST
from rag_harness.diagnosis.reruns import bench_of, no_reruns, running, settings_of
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.frontends.cli.options import add_settings, settings_said
from rag_harness.records.manifest import RunManifest, read_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.tables.answer_warnings import check_whole, said_of_last_run
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.golden_suite import every_miss, one_question
from rag_harness.tables.pairwise import USUAL_MEASURES, power_lines
from rag_harness.tables.reader import read_run

# ``rag-harness compare`` and ``power``: how saved runs differ, and which differences they can show.


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``compare``."""
    run = "output folder of a run, or a baseline that --rag-save wrote: its file, or its name"
    parser.add_argument("before", metavar="BEFORE", help=f"the earlier run: {run}")
    parser.add_argument("now", metavar="NOW", help="the later run: the same")
    parser.add_argument(
        "--measure", action="append", default=[], metavar="NAME", help="only these measures; may be repeated"
    )
    _baselines_argument(parser)


def run_compare(chosen: argparse.Namespace) -> int:
    """Print what changed from before to now."""
    for named in (chosen.before, chosen.now):
        check_whole(Path(named))
    before, now = (read_run(named, chosen.baselines) for named in (chosen.before, chosen.now))
    say(*compared_lines(before, now, chosen.measure, columns()))
    return 0


def power_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``power``."""
    run = "output folder of a run, or a baseline that --rag-save wrote: its file, or its name"
    parser.add_argument("run_named", metavar="RUN", help=run)
    wished = "difference that you want to see, in the unit of the measure; default: 0.05"
    parser.add_argument("--difference", type=float, default=0.05, metavar="D", help=wished)
    judged = f"measure to look at, may be repeated; default: what was judged, else {', '.join(USUAL_MEASURES)}"
    parser.add_argument("--measure", action="append", default=[], metavar="NAME", help=judged)
    parser.add_argument("--slice", metavar="KEY", default="", help="each value of a slice key by itself: query_type")
    _baselines_argument(parser)


def run_power(chosen: argparse.Namespace) -> int:
    """Print which differences the run can show."""
    run = read_run(chosen.run_named, chosen.baselines)
    say(*power_lines(run, chosen.difference, chosen.measure, chosen.slice))
    return 0


def _baselines_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the folder of saved runs."""
    where = "folder of the baselines that are named; default: baselines"
    parser.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help=where)


# ``rag-harness explain``: finds out why trials of a run failed.

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
    worst = f"only the N worst trials of each experiment; default: all that may have failed, and at least {WORST}"
    parser.add_argument("--worst", type=int, metavar="N", help=worst)
    parser.add_argument("--review", action="store_true", help="ask you of each cause whether it is right, and keep it")
    parser.add_argument("--by", default="", metavar="NAME", help="who reviews; default: the name of your login")


def run_explain(chosen: argparse.Namespace) -> int:
    """Explain the run, or one trial of it; return the exit status."""
    if chosen.review:
        from rag_harness.diagnosis.cause_lines import review

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
                say(
                    *cause_lines(
                        causes, str(chosen.output), answers=explainer.answers, wrong=explainer.wrong_by_experiment
                    )
                )
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
        return "nothing that was checked is wrong. Without a ground truth it is not known whether its answer is right"
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
        yield Explainer(chosen.output, no_reruns(), worst=chosen.worst)
        return
    from rag_harness.pipelines.parts import RunParts

    as_run = settings_of(manifest.settings, {})
    parts = RunParts(replace(as_run, mode=chosen.mode, budget=chosen.budget, overwrite=False))
    with running(chosen.output, parts) as runs:
        yield Explainer(chosen.output, bench_of(parts, as_run), runs, chosen.worst)


# ``rag-harness tune``: finds the better configuration of a pipeline.

_SETTINGS = {
    "kb": "folder of documents",
    "queries": "questions; default: queries.jsonl in the folder of documents",
    "dataset": "public collection instead, with its own questions: beir:DIR, beir:FILE.zip",
    "profile": "models and endpoints, as --rag-profile",
    "mode": "how models are asked: auto, replay, record or live",
    "cache_dir": "folder for vectors",
    "project": "folder that has cassettes/, the folder of recordings",
    "limit": "only the first N questions",
    "concurrency": "questions in flight at once",
    "cluster": "what keeps questions together, as --rag-cluster",
    "budget": "most USD that all calls may cost",
    "endpoint": "TOML file of a service that is tuned",
}


def tune_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``tune``."""
    parser.add_argument(
        "space", type=Path, nargs="?", metavar="SPACE.toml", help="parameters, their values, and what is wanted"
    )
    asked = "write a space instead: what the causes of the run in this folder ask for (--rag-attribute)"
    parser.add_argument("--suggest", type=Path, metavar="OUTPUT", help=asked)
    written = "write the chosen configuration; with --suggest the space, by default space.toml"
    parser.add_argument("-o", dest="tuned", type=Path, metavar="TUNED.toml", help=written)
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder of the rows; default: output")
    parser.add_argument("--overwrite", action="store_true", help="begin again instead of going on")
    add_settings(parser, _SETTINGS)


def run_tune(chosen: argparse.Namespace) -> int:
    """Race the configurations of a space; or write one."""
    if (chosen.space is None) == (chosen.suggest is None):
        raise SettingsError("Name a space, or a run that suggests one: rag-harness tune --suggest output -o space.toml")
    if chosen.suggest is not None:
        return _suggested(chosen.suggest, chosen.tuned or Path("space.toml"))
    from rag_harness.core.settings.loading import ini_values, load_settings
    from rag_harness.diagnosis.reruns import running
    from rag_harness.diagnosis.tuning.outcome import outcome_lines
    from rag_harness.diagnosis.tuning.space import read_space
    from rag_harness.diagnosis.tuning.tuner import Tuner, check_tuned, write_tuned
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.runs.fingerprint import asked_now, fingerprint_about

    space = read_space(chosen.space)
    settings = load_settings(_given(chosen), ini_values(Path.cwd()))
    if chosen.tuned is not None:
        check_tuned(chosen.tuned, settings)
    parts = RunParts(settings)
    with running(chosen.output, parts) as runs:
        tuner = Tuner(
            space,
            runs,
            parts,
            asked_now(lambda made: fingerprint_about(made, settings, parts.data(made.data))),
            chosen.output,
            lambda line: say(f"tune: {line}"),
        )
        outcome, winner = tuner.run()
    say("", *outcome_lines(outcome))
    if chosen.tuned is not None:
        write_tuned(chosen.tuned, outcome, winner)
        say(f"{chosen.tuned}: pytest --rag-config={chosen.tuned} --rag-run={chosen.tuned.stem}")
    return 0


def _suggested(output: Path, file: Path) -> int:
    from rag_harness.diagnosis.tuning.tuner import suggest_space
    from rag_harness.frontends.cli.init import schema_file

    schema = schema_file(Path(), "space")
    asking = suggest_space(output, file, schema if schema.is_file() else None)
    say(f"{file}: what {asking} failed trials ask for. Read it, then: rag-harness tune {file} -o tuned.toml")
    return 0


def _given(chosen: argparse.Namespace) -> dict[str, Any]:
    said = settings_said(chosen, _SETTINGS)
    given = {{"kb": "kb_dir"}.get(name, name): value for name, value in said.items()}
    if "endpoint" in given:
        given["endpoint"] = (given["endpoint"],)
    return {**given, "overwrite": chosen.overwrite}
