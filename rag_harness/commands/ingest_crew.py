"""The workers of an ingest: this process, or actors on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rag_harness.errors import PrerequisiteError
from rag_harness.registry.installed import install
from rag_harness.retrieval.bulk.bulk_messages import IngestOpening, ReadyWorker
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.here import crew_here


@contextmanager
def crew_for(opening: IngestOpening) -> Iterator[tuple[Crew, ReadyWorker]]:
    """Give the workers for ``opening.settings``, as long as the block lasts.

    Raises:
        PrerequisiteError: Ray is not installed, there is no cluster, or a node cannot do the work.
    """
    settings = opening.settings
    if settings.engine == "local":
        yield crew_here(opening)
        return
    try:
        from rag_harness.engine.distributed.ray_hands import crew_on_ray
        from rag_harness.engine.distributed.ray_nodes import RayNodes
    except ImportError as error:
        raise PrerequisiteError(f"--engine ray needs Ray: {install('ray')}") from error
    there = replace(settings, rootdir=str(Path(settings.rootdir).absolute()))
    nodes = RayNodes(there)
    with crew_on_ray(nodes, replace(opening, settings=there), settings.ray_workers, settings.ray_gpus) as found:
        yield found
