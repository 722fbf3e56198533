"""The command ``rag-harness explain``: its arguments, and what it does."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_harness.derived.attribution.bench import Bench, nobody
from rag_harness.derived.attribution.derived import Came, DerivedRuns, Engine
from rag_harness.derived.attribution.explain import Explainer
from rag_harness.derived.attribution.failing import WORST
from rag_harness.derived.attribution.section import cause_lines, whole
from rag_harness.results.manifest import read_manifest
from rag_harness.settings import Settings
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.protocols import Experiment

MODES = ("auto", "replay", "record", "live")


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``explain``."""
    parser.add_argument("output", type=Path, nargs="?", default=Path("output"), help="of a run; default: output")
    parser.add_argument("trial", nargs="?", default="", metavar="TRIAL", help="only this one, whole: e3-q_direct_001")
    parser.add_argument("--rows-only", action="store_true", help="run nothing again: what rows and gold tell")
    mode = "which models may be asked, as --rag-mode of a test run; default: auto, which costs nothing"
    parser.add_argument("--mode", choices=MODES, default="auto", help=mode)
    parser.add_argument("--budget", type=float, default=0.0, metavar="USD", help="most that calls may cost")
    worst = f"look at so many an experiment beside failed categories; default: {WORST}"
    parser.add_argument("--worst", type=int, default=WORST, metavar="N", help=worst)
    parser.add_argument("--review", action="store_true", help="ask you of each cause whether it is right, and keep it")
    parser.add_argument("--by", default="", metavar="NAME", help="who reviews; default: the name of your login")


def run_explain(chosen: argparse.Namespace) -> int:
    """Explain the run, or one trial of it; return the exit status."""
    if chosen.review:
        from rag_harness.derived.attribution.review import review

        return review(chosen.output, chosen.by)
    with _explainer(chosen) as explainer:
        if not chosen.trial:
            say(*cause_lines(explainer.every(), str(chosen.output), answers=explainer.answers))
            return 0
        found = explainer.one(chosen.trial)
    say(*(whole(found) if found else [f"{chosen.trial} did not fail: its answer carries the gold."]))
    return 0


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


def settings_of(said: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Return the settings of a run from its ``run.json``. ``given`` replaces some of them; keys are the present ones.

    Raises:
        SettingsError: a value is no longer valid.
    """
    from rag_harness.settings.loading import load_settings

    hidden = [each for each in fields(Settings) if each.metadata.get("secret") or each.metadata.get("derived")]
    left_out = {each.name for each in hidden} | {"rootdir", "dry_run", "gate", "save", "compare"}
    known = {each.name for each in fields(Settings)} - left_out
    return load_settings(
        {**{name: value for name, value in said.items() if name in known}, **given}, rootdir=said.get("rootdir", ".")
    )


def bench_of(parts: RunParts, as_run: Settings) -> Bench:
    """Return a bench of the registered experiments. ``as_run`` are the settings of the rows."""
    from rag_harness.engine.fingerprint import fingerprint_of
    from rag_harness.pipelines import experiment, known_experiments

    def fingerprint(found: Experiment) -> str:
        return fingerprint_of(found, as_run, parts.data(found.data).queries_digest)

    def build(name: str) -> Experiment | None:
        return experiment(name, parts) if name in known_experiments(parts.settings) else None

    return Bench(build, fingerprint, parts.data)


@contextmanager
def running(output: Path, parts: RunParts) -> Iterator[DerivedRuns]:
    """Run derived trials in this process. At the end, after errors too, their results are in the files."""
    from rag_harness.engine.stored import adopt_journals
    from rag_harness.engine.workplace import Here
    from rag_harness.results.prompts import PromptFiles

    adopt_journals(output)
    engine, here = _Engine(output, parts), Here(parts.settings, PromptFiles(output).keep)
    runs = DerivedRuns(output, parts.settings, engine.get, lambda: here)
    try:
        yield runs
    finally:
        runs.close()
        engine.close()
        parts.flush()
        adopt_journals(output)


class _Engine:
    """A loop and its journal, made when the first trial has to run."""

    def __init__(self, output: Path, parts: RunParts) -> None:
        self._output, self._parts = output, parts
        self._close: list[Callable[[], None]] = []
        self._made: Engine | None = None

    def get(self) -> Engine:
        """Return the loop."""
        if self._made is None:
            from rag_harness.engine.journal import JOURNALS, Journal
            from rag_harness.engine.loop import BackgroundLoop

            journal = Journal(self._output / JOURNALS, f"{uuid4().hex}-explain")

            async def keep(came: Came) -> None:
                if came.new:
                    await journal.keep(b"".join(came.new))

            loop: BackgroundLoop[Came] = BackgroundLoop(self._parts.settings.concurrency, keep)
            self._close = [lambda: loop.close(self._parts.endpoints.aclose), journal.close]
            self._made = loop
        return self._made

    def close(self) -> None:
        """Stop the loop. Then its journal can be taken over."""
        for close in self._close:
            close()
