"""``rag-harness tune``: finds the better configuration of a pipeline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_harness.commands.with_settings import add_settings, settings_said
from rag_harness.errors import SettingsError
from rag_harness.shown.terminal import say

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
    parser.add_argument("--overwrite", action="store_true", help="begin anew instead of going on")
    add_settings(parser, _SETTINGS)


def run_tune(chosen: argparse.Namespace) -> int:
    """Race the configurations of a space; or write one."""
    if (chosen.space is None) == (chosen.suggest is None):
        raise SettingsError("Name a space, or a run that suggests one: rag-harness tune --suggest output -o space.toml")
    if chosen.suggest is not None:
        return _suggested(chosen.suggest, chosen.tuned or Path("space.toml"))
    from rag_harness.derived.local_run import running
    from rag_harness.derived.tuning.outcome_text import outcome_lines
    from rag_harness.derived.tuning.space_file import read_space
    from rag_harness.derived.tuning.tuned_file import check_tuned, write_tuned
    from rag_harness.derived.tuning.tuner import Tuner
    from rag_harness.engine.fingerprint import asked_now, fingerprint_about
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

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
    from rag_harness.commands.starter.editor_schemas import schema_file
    from rag_harness.derived.tuning.suggesting import suggest_space

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
