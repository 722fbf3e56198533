"""From a state of a collection to the objects that answer questions; everything slow is made here, beforehand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.pipelines import builder, experiment, is_variant
from rag_harness.protocols import Experiment
from rag_harness.retrieval.indexes.live_opening import opening_of
from rag_harness.service.corpus.contents import Contents
from rag_harness.service.corpus.models import ServerModels
from rag_harness.service.corpus.searching import LiveRetrieval
from rag_harness.service.corpus.serving import Serving
from rag_harness.service.corpus.serving_parts import CollectionParts, Lasting
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.service.corpus.ways import Way
from rag_harness.types import Matrix, Vector


@dataclass(frozen=True)
class ServedExperiment:
    """The served experiment and how it indexes documents.

    Attributes:
        name: the experiment's name.
        strict: the name of its strict variant; empty if it has none.
        ways: the ways in which it searches documents: how they become an index.
        made_of: everything that decides cuts and vectors, as JSON.
    """

    name: str
    strict: str
    ways: tuple[Way, ...]
    made_of: str


def served_experiment(name: str, models: ServerModels) -> ServedExperiment:
    """Find out how experiment ``name`` indexes documents, by building it over no documents.

    Raises:
        RegistryError: there is no such experiment.
        SettingsError: a service cannot index them so.
    """
    module = import_module(builder(name, models.settings).__module__)
    strict = "" if is_variant(name) else str(getattr(module, "STRICT", ""))
    parts = CollectionParts(Lasting(models, CollectionStores(None, {}), _Nothing()), Contents())
    for each in filter(None, (name, strict)):
        experiment(each, parts)
    if not parts.retrievals:
        raise SettingsError(
            f"Experiment {name!r} asks parts.retrieval for nothing, so documents of a service would not reach it. "
            f"Serve one that retrieves from parts.retrieval."
        )
    _check_index(parts)
    first, *further = [_made_of(way, parts.retrievals[number]) for number, way in enumerate(parts.ways)]
    made_of = {**first, "further": further} if further else first
    return ServedExperiment(name, strict, tuple(parts.ways), json.dumps(made_of, sort_keys=True))


def _check_index(parts: CollectionParts) -> None:
    """Refuse what a service would search otherwise than it was evaluated."""
    indexes = list(dict.fromkeys(way.spec.index for way in parts.ways))
    if len(indexes) > 1:
        raise SettingsError(
            f"The experiment searches two indexes, {indexes[0]} and {indexes[1]}: a service has one. Serve an "
            f"experiment with one."
        )
    opening_of(indexes[0])
    if any("searched_by" in each.identity() for each in parts.retrievals.values()):
        raise SettingsError(
            "qdrant_graph searches by a graph, and a service compares every vector: what was evaluated would "
            "not be what is served. Leave qdrant_graph out, evaluate again, and serve that."
        )


def _made_of(way: Way, retrieval: LiveRetrieval) -> dict[str, Any]:
    identity = {key: value for key, value in retrieval.identity().items() if key != "alike_by"}
    return {**way.identity, **identity}


def serving_of(
    wanted: ServedExperiment, lasting: Lasting, contents: Contents, generation: int
) -> tuple[Serving, LiveRetrieval]:
    """Return the serving for ``contents``, ready for the first question, and what it retrieves from."""
    parts = CollectionParts(lasting, contents, wanted.ways)
    normal = experiment(wanted.name, parts)
    strict: Experiment | None = experiment(wanted.strict, parts) if wanted.strict else None
    retrieval = parts.retrievals[0]
    # Without dense retrieval, an experiment takes questions of any length.
    is_dense = any(each.is_dense for each in parts.retrievals.values())
    check = {"check": retrieval.embedder.check_query} if is_dense else {}
    parts.warm()
    settings = lasting.models.settings
    longest, refusals = settings.max_answer, settings.refusals
    return (
        Serving(normal, strict, contents.document, generation, longest_answer=longest, refusals=refusals, **check),
        retrieval,
    )


class _Nothing:
    """An index without points."""

    def add(self, ids: object, vectors: Matrix) -> None:
        """Add nothing."""

    def remove(self, ids: object) -> None:
        """Remove nothing."""

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:  # noqa: ARG002
        return []

    def ids(self) -> set[int]:
        return set()

    def vectors(self, ids: object) -> dict[int, Vector]:  # noqa: ARG002
        return {}

    def tidy(self) -> None:
        """Tidy nothing."""

    def close(self) -> None:
        """Close nothing."""
