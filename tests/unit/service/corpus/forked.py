"""Processes of a test, forked from one that has imported what a server imports: each would take most of a second."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess


def started(work: Callable[..., None], *given: object) -> BaseProcess:
    """Start a process that does ``work``."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.unit.service.corpus.killed", "qdrant_edge", "rag_harness.studies.retail"])
    process = forks.Process(target=work, args=given, daemon=True)
    process.start()
    return process
