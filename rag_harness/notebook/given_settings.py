"""Settings of an evaluation: options by keyword, environment, ``.env`` and the ini file, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.measures import measure_named, parts_of
from rag_harness.measures.judged.carried import LateMeasure
from rag_harness.measures.metamorphic import metamorphic_of
from rag_harness.models.dry_run import of_dry_run
from rag_harness.settings import Settings, options
from rag_harness.settings.ini_file import ini_values
from rag_harness.settings.listed import names_in
from rag_harness.settings.loading import load_settings
from rag_harness.settings.removed import refuse_removed

_SHORT = {"kb": "kb_dir"}
_ARGUMENTS = {"queries": "the second argument", "measures": "measures=", "run": "the first argument"}
_OF_PYTEST = (
    *("affected_by", "attribute", "compare", "engine", "export", "failed_turn", "family", "gate", "gates_elsewhere"),
    *("golden", "undecided", "judge_repeats", "max_age", "metamorphic", "metamorphic_cases", "misses", "not_judged"),
    *("order_seed", "otlp", "ray_address", "ray_gpus", "ray_workers", "repeats", "report", "retriever", "save"),
    *("sections", "slices", "stop_early", "strict", "tune", "user_base_url", "user_model"),
)
"""Options that only a run of pytest looks at. Nothing here could keep what they promise."""


def notebook_settings(given: Mapping[str, Any], measures: Sequence[str]) -> Settings:
    """Return the settings of an evaluation. Relative paths begin in the working directory.

    Args:
        given: options by their names, ``kb`` for ``kb_dir``. They count more than the environment.
        measures: names of measures.

    Raises:
        SettingsError: an option is unknown, or needs pytest; a value cannot be used; a name is no measure.
    """
    said = {_SHORT.get(name, name): value for name, value in given.items() if value is not None}
    _check_names(said)
    loaded = load_settings({name: _plain(value) for name, value in said.items()}, ini_values(Path.cwd()))
    settings = of_dry_run(loaded)
    usual = {name: getattr(Settings(), name) for name in _OF_PYTEST}
    named = tuple(names_in(measures or settings.measures))
    _check_measures(named)
    return replace(settings, **usual, measures=named)


def _check_names(names: Iterable[str]) -> None:
    known = [each.name for each in options()]
    for name in names:
        refuse_removed(f"evaluate: {name}", name)
        if name in _ARGUMENTS:
            raise SettingsError(f"evaluate: {name} is no option here: it is {_ARGUMENTS[name]}.")
        if name in _OF_PYTEST:
            flag = name.replace("_", "-")
            raise SettingsError(f"evaluate: {name} is an option of a run of pytest: pytest --rag-{flag}=…")
        if name not in known:
            usable = [each for each in (*known, *_SHORT) if each not in (*_OF_PYTEST, *_ARGUMENTS)]
            raise SettingsError(f"evaluate: {unknown('option', name, usable)}")


def _plain(value: Any) -> Any:
    """Return a value as the command line gives it: paths as text, and of an option with several values a list."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return fspath(value) if hasattr(value, "__fspath__") else value


def _check_measures(names: Sequence[str]) -> None:
    """Refuse measures that do not exist, and those that only a run of pytest works out.

    Raises:
        SettingsError: names the measure; suggests the nearest one.
    """
    for name in names:
        measure_named(name)
        if metamorphic_of([name]) or any(isinstance(each, LateMeasure) for each in parts_of([name])):
            raise SettingsError(
                f"evaluate: {name} is worked out after the last test of a run of pytest: pytest --rag-measures={name}"
            )
