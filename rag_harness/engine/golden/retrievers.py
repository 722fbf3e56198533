"""The retriever under test, by its name: a stage of the run's own retrieval, or the retrieve step of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rag_harness.errors import SettingsError, unknown
from rag_harness.protocols import Experiment, Retriever
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.retrieval.retrievers import HybridRetriever, RerankedRetriever

RETRIEVERS = ("dense", "bm25", "hybrid", "reranked")


def retriever_named(
    name: str, retrieval: Retrieval, experiment_of: Callable[[str], Experiment], experiments: Sequence[str]
) -> Retriever:
    """Return the retriever that ``name`` stands for: one of ``RETRIEVERS``, or the retrieve step of an experiment.

    Raises:
        SettingsError: there is none of that name, or the experiment retrieves nothing.
    """
    if name == "dense":
        return retrieval.dense
    if name == "bm25":
        return retrieval.words
    if name == "hybrid":
        return HybridRetriever((retrieval.dense, retrieval.words))
    if name == "reranked":
        return RerankedRetriever(retrieval.dense, retrieval.reranker(), retrieval.settings.candidates)
    if name in experiments:
        return retrieve_step(experiment_of(name))
    raise SettingsError(unknown("retriever", name, [*RETRIEVERS, *experiments]))


def retrieve_step(experiment: Experiment) -> Retriever:
    """Return the retrieve step that an experiment declares, or its pipeline's own method ``retrieve(query, k)``.

    Raises:
        SettingsError: it has neither.
    """
    if experiment.retriever is not None:
        return experiment.retriever
    if callable(getattr(experiment.pipeline, "retrieve", None)):
        return cast("Retriever", experiment.pipeline)
    raise SettingsError(
        f"Experiment {experiment.id!r} retrieves nothing that could be tested. Give its pipeline a method "
        f"retrieve(query, k), or choose another with --rag-retriever."
    )
