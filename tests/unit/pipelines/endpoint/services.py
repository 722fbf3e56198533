"""A service by a few lines of TOML, and one question to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts

T = TypeVar("T")
QUERY = Query("q1", "How long can I return a lamp?")


async def at_once(_seconds: float) -> None:
    """Wait for nothing between two tries."""


class Service:
    """A service in a folder of its own.

    Args:
        folder: of pyproject, ``.env`` and recordings.
        spec: its TOML.
        scrub: removes private text from what is kept.
        settings: options of the run.
    """

    def __init__(self, folder: Path, spec: str, scrub: Callable[[str], str] | None = None, **settings: Any) -> None:
        (folder / "my_service.toml").write_text(spec, encoding="utf-8")
        chosen = {"endpoint": ["my_service.toml"], "kb_dir": "kb", "profile": "mock", "mode": "live", **settings}
        self.parts = RunParts(load_settings(chosen, rootdir=folder), scrub=scrub)
        self.experiment: Experiment = experiment("my_service", self.parts)
        self.pipeline = cast("EndpointPipeline", self.experiment.pipeline)
        self.pipeline._client._wait = at_once

    def ask(self, query: Query = QUERY) -> PipelineOutput:
        """Return what it answers."""
        return self.ask_all(query)[0]

    def ask_all(self, *queries: Query) -> list[PipelineOutput]:
        """Return what it answers to several questions at once."""

        async def asking() -> list[PipelineOutput]:
            return list(await asyncio.gather(*map(self.pipeline.answer, queries)))

        return self.closing(asking())

    def closing(self, calls: Coroutine[Any, Any, T]) -> T:
        """Run ``calls``, and close what they have opened."""

        async def closing() -> T:
            try:
                return await calls
            finally:
                await self.parts.endpoints.aclose()

        return asyncio.run(closing())
