"""Experiments -> what a worker can build them of, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from rag_harness.distributed.values import Carried
from rag_harness.engine.fingerprint import fingerprint_parts
from rag_harness.errors import PrerequisiteError
from rag_harness.pipelines import builder
from rag_harness.protocols import Experiment
from rag_harness.settings import Settings
from rag_harness.types import Query


def carry(
    experiment: Experiment, *, is_registered: bool, queries: Sequence[Query], queries_digest: str, settings: Settings
) -> Carried:
    """Return what a worker builds ``experiment`` of: its name, or where no worker can know that, its pipeline.

    Raises:
        PrerequisiteError: the pipeline cannot be pickled; names the attribute.
    """
    pipeline = b"" if is_registered else pickled(experiment)
    built_by = builder(experiment.id, settings).__module__ if is_registered else ""
    parts = fingerprint_parts(experiment, settings, queries_digest, built_by)
    return Carried(experiment.id, pipeline, experiment.data, queries, queries_digest, parts)


def pickled(experiment: Experiment) -> bytes:
    """Return the pipeline of ``experiment``, that a fixture has made, as bytes.

    What a module of the suite defines travels with it: a worker can import no conftest.

    Raises:
        PrerequisiteError: it cannot be pickled; names the attribute.
    """
    pickle = _pickle()
    pipeline = experiment.pipeline
    with _by_value(pickle, type(pipeline).__module__):
        try:
            found: bytes = pickle.dumps(pipeline)
        except Exception as error:
            raise PrerequisiteError(
                f"The pipeline of experiment {experiment.id!r} cannot be sent to a Ray worker: {_culprit(pipeline)} "
                f"cannot be pickled ({error}). Make it on first use in answer(), or give the class a __getstate__ that "
                f"leaves it out."
            ) from error
    return found


def unpickled(carried: Carried) -> Any:
    """Return the pipeline that ``carried`` holds."""
    return _pickle().loads(carried.pipeline)


def _pickle() -> Any:
    from ray import cloudpickle

    return cloudpickle


def _culprit(pipeline: Any) -> str:
    name = type(pipeline).__name__
    for attribute, value in getattr(pipeline, "__dict__", {}).items():
        try:
            _pickle().dumps(value)
        except Exception:
            return f"{name}.{attribute}, a {type(value).__name__},"
    return name


@contextmanager
def _by_value(pickle: Any, module: str) -> Iterator[None]:
    found = sys.modules.get(module)
    if found is None or not _is_of_the_suite(found):
        yield
        return
    pickle.register_pickle_by_value(found)
    try:
        yield
    finally:
        pickle.unregister_pickle_by_value(found)


def _is_of_the_suite(module: ModuleType) -> bool:
    """Return whether only pytest can import a module: what was installed, every node has."""
    file = getattr(module, "__file__", None) or ""
    return "site-packages" not in file and not module.__name__.startswith("rag_harness.")
