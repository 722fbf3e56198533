"""Derived trials of a finished run, run in this process: its settings, its experiments and an engine for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_harness.derived.attribution.bench import Bench
from rag_harness.derived.derived_runs import Came, DerivedRuns
from rag_harness.settings import Settings
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.engine.jobs import Engine, JobResult
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.protocols import Experiment


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
    from rag_harness.engine.fingerprint import fingerprint_about
    from rag_harness.pipelines import experiment, is_known

    def fingerprint(found: Experiment) -> str:
        return fingerprint_about(found, as_run, parts.data(found.data))

    def build(name: str) -> Experiment | None:
        return experiment(name, parts) if is_known(name, parts.settings) else None

    return Bench(build, fingerprint, parts.data, is_live=as_run.mode == "live")


@contextmanager
def running(output: Path, parts: RunParts) -> Iterator[DerivedRuns]:
    """Run derived trials in this process. At the end, after errors too, their results are in the files."""
    from rag_harness.engine.stored import adopt_journals
    from rag_harness.engine.workplace import Here, Workplace
    from rag_harness.results.prompts import PromptFiles

    adopt_journals(output)
    here: Workplace = Here(parts.settings, PromptFiles(output).keep)
    process = _Process(output, parts)
    runs = DerivedRuns(output, parts.settings, process.engine, Once(lambda: here))
    try:
        yield runs
    finally:
        runs.close()
        process.close()
        parts.flush()
        adopt_journals(output)


class _Process:
    """A loop and its journal, made when the first trial has to run."""

    def __init__(self, output: Path, parts: RunParts) -> None:
        self._output, self._parts = output, parts
        self._close: list[Callable[[], None]] = []
        self.engine: Once[Engine] = Once(self._make)

    def _make(self) -> Engine:
        from rag_harness.engine.journal import JOURNALS, Journal
        from rag_harness.engine.loop import BackgroundLoop

        journal = Journal(self._output / JOURNALS, f"{uuid4().hex}-explain")

        async def keep(came: JobResult) -> None:
            if new := cast("Came", came).new:
                await journal.keep(b"".join(new))

        loop: BackgroundLoop[JobResult] = BackgroundLoop(self._parts.settings.concurrency, keep)
        self._close = [lambda: loop.close(self._parts.endpoints.aclose), journal.close]
        return loop

    def close(self) -> None:
        """Stop the loop. Then its journal can be taken over."""
        for close in self._close:
            close()
