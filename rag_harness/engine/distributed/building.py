"""Builds a carried experiment on this node, and checks that its rows will be those of the process of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from rag_harness.engine.distributed.carrying import check_same, unpickled
from rag_harness.engine.distributed.run_messages import Carried
from rag_harness.engine.fingerprint import fingerprint_about, fingerprint_parts
from rag_harness.engine.golden.suite import GoldenSuite
from rag_harness.errors import RecordingMissError
from rag_harness.pipelines import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.settings import Settings
from rag_harness.types import GOLDEN


def built(carried: Carried, parts: RunParts, settings: Settings) -> Experiment:
    """Return an experiment, ready for the queries that it was carried with.

    Args:
        carried: what it is built from.
        parts: of this node.
        settings: of the whole run.

    Raises:
        PrerequisiteError: its rows would differ from those of the process of the tests. Any other error is of building.
    """
    if carried.pipeline:
        find_page = parts.data(carried.data).find_page
        return Experiment(carried.name, unpickled(carried), data=carried.data, find_page=find_page)
    made, decides = _golden(parts, settings) if carried.name == GOLDEN else _registered(carried, parts, settings)
    check_same(carried, decides)
    if made.prepare is not None:
        # A trial that retrieves reports a missing recording itself. A trial that does not retrieve needs none.
        with suppress(RecordingMissError):
            made.prepare(carried.queries)
    return made


def _registered(carried: Carried, parts: RunParts, settings: Settings) -> tuple[Experiment, Mapping[str, Any]]:
    made = experiment(carried.name, parts)
    return made, fingerprint_parts(made, settings, carried.queries_digest)


def _golden(parts: RunParts, settings: Settings) -> tuple[Experiment, Mapping[str, Any]]:
    """Return the golden suite as this node reads it. Its entries decide how hits are named and ranked."""
    registered = cache(lambda name: experiment(name, parts))

    def fingerprint(of: Experiment) -> str:
        return fingerprint_about(of, settings, parts.data(of.data))

    suite = GoldenSuite(parts, registered, fingerprint)
    return suite.experiment, fingerprint_parts(suite.experiment, settings, suite.digest)
