"""One short file an experiment: ``e3_filtered_rag.py`` is experiment ``e3`` and writes ``e3_filtered_rag.jsonl``.

Such a file has a function ``build(parts) -> Experiment``. Other packages register theirs under the entry point
``rag_harness.pipelines``, e.g. ``mine = my_package.my_pipeline:build``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_harness.errors import RegistryError, unknown
from rag_harness.protocols import Experiment
from rag_harness.registry import registered

_FILE = re.compile(r"([a-z]\d+)_\w+")


@lru_cache
def built_in() -> dict[str, str]:
    """Return module names by experiment id, from the names of the files in this folder; imports none of them."""
    stems = sorted(file.stem for file in Path(__file__).parent.glob("*.py"))
    return {match[1]: stem for stem in stems if (match := _FILE.fullmatch(stem))}


def known_experiments() -> list[str]:
    """Return the ids of all experiments, built-in and registered."""
    return sorted({*built_in(), *registered("pipelines")})


def builder(experiment: str) -> Callable[[Any], Any]:
    """Return the function that builds the pipeline of ``experiment``.

    Raises:
        RegistryError: there is no such experiment; the message lists those that exist.
    """
    if experiment in built_in():
        build: Callable[[Any], Any] = import_module(f"{__name__}.{built_in()[experiment]}").build
        return build
    if experiment in registered("pipelines"):
        registered_build: Callable[[Any], Any] = registered("pipelines")[experiment].load()
        return registered_build
    raise RegistryError(unknown("experiment", experiment, known_experiments()))


def experiment(name: str, parts: Any) -> Experiment:
    """Build the experiment ``name`` of ``parts``. A builder may return the pipeline alone: it then declares nothing.

    Raises:
        RegistryError: there is no such experiment.
    """
    built = builder(name)(parts)
    return built if isinstance(built, Experiment) else Experiment(name, built)


def result_name(experiment: str) -> str:
    """Return the stem of an experiment's result file."""
    return built_in().get(experiment, experiment)
