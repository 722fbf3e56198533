"""An experiment made ready by one of two Ray workers, each with a cache of its own, and by one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Query
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.runs.distributed.cluster import RayNodes, RayWorker
from rag_harness.runs.distributed.messages import Carried, RunOpening, WorkerLostError, carry
from rag_harness.runs.distributed.worker import TextBatch, Waiting

LAMPS = 700
"""Chunks: three parts, so that each of two workers is the home of one at least."""


async def one_of_two_prepares(folder: Path, address: str) -> None:
    """Leave vectors in ``alone``, of one process; in ``cache0``, of who prepares; in ``cache1``, of its peer."""
    settings = _settings(folder, address)
    parts = RunParts(replace(settings, cache_dir="alone"))
    ray = RayNodes(settings)
    try:
        first, second = await _workers(ray, settings)
        await first.carry(_prepared(parts))
        await first.close()
        await _check_peer(second, parts)
    finally:
        ray.leave()


def _settings(folder: Path, address: str) -> Settings:
    (folder / "kb").mkdir()
    for number in range(LAMPS):
        (folder / "kb" / f"lamp{number}.md").write_text(f"# Lamp {number}\n\nIt costs {number} euros.\n")
    given = {"profile": "mock", "kb_dir": "kb", "output": "output", "ray_address": address}
    return load_settings(given, rootdir=folder)


def _prepared(parts: RunParts) -> Carried:
    queries = [Query(f"q{number}", f"What does lamp {number} cost?") for number in range(20)]
    made = experiment("e2", parts)
    assert made.prepare is not None
    made.prepare(queries)
    return carry(made, is_registered=True, queries=queries, queries_digest="", settings=parts.settings)


async def _workers(ray: RayNodes, settings: Settings) -> list[RayWorker]:
    ledger = ray.ledger(settings.path("ledger"))
    workers = [ray.worker(f"ray{number}", node) for number, node in enumerate(ray.plan(2))]
    for number, worker in enumerate(workers):
        own = replace(settings, cache_dir=f"cache{number}")
        await worker.open(RunOpening(own, 2, "run7", worker.name, "run7.shared", ledger))
    for worker in workers:
        await worker.meet([each.peer for each in workers])
    return workers


async def _check_peer(worker: RayWorker, parts: RunParts) -> None:
    texts = [chunk.text for chunk in parts.retrieval().chunks[:3]]
    embedder = parts.embedder()
    part = TextBatch(parts.settings.embed_model, (embedder.model, embedder.revision), texts, "document", False)
    said = await worker.peer.embed(part)
    assert not isinstance(said, Waiting)
    assert said[0].tobytes() == embedder.embed_documents(texts).tobytes()
    assert said[0].flags.writeable  # no memory of Ray's
    worker.kill()
    with pytest.raises(WorkerLostError):
        await worker.peer.embed(part)


def vectors_in(folder: Path) -> dict[bytes, bytes]:
    """Return the vectors that a cache has on disk, by key."""
    files = [load_file(file) for file in (folder / "vectors").rglob("*.safetensors")]
    return {key.tobytes(): row.tobytes() for file in files for key, row in zip(file["keys"], file["data"], strict=True)}
