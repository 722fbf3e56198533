"""Experiments by name: shipped, registered, services and configurations, with the paths of their results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from rag_harness.core.protocols import Experiment
    from rag_harness.core.settings import Settings
    from rag_harness.core.settings.configurations import ConfigurationSpec
    from rag_harness.core.settings.endpoints import EndpointSpec


# The shipped experiments are a table, ``studies/experiments.py``. Other packages register theirs under the entry point
# ``rag_harness.pipelines``: ``mine = my_package.my_pipeline:build``. The description of a service makes it an
# experiment (``endpoint/``).

# Suites that do not use the plugin import this file for the names of the experiments. So it imports everything else
# inside functions.


def _shipped() -> Mapping[str, Any]:
    """Return the experiments of the studies, by id. The table imports no study."""
    found: Mapping[str, Any] = import_module("rag_harness.studies.experiments").EXPERIMENTS
    return found


@lru_cache
def built_in() -> dict[str, str]:
    """Return the stems of the result files of the shipped experiments, by id."""
    return {name: each.file for name, each in sorted(_shipped().items())}


def is_variant(experiment: str) -> bool:
    """Return whether it is another shipped experiment with a value changed."""
    return experiment in _shipped() and bool(_shipped()[experiment].values)


def known_experiments(settings: Settings | None = None) -> list[str]:
    """Return the ids of all experiments: built-in, registered, and services and configurations of ``settings``."""
    of_run = (*endpoints_of(settings), *configurations_of(settings)) if settings else ()
    return sorted({*built_in(), *_registered(), *of_run})


def answering(experiment: str, settings: Settings | None = None) -> str:
    """Return the experiment whose pipeline answers: ``c1`` for ``c1-own`` and ``c1-sim``, unless there is one of that
    very name."""
    from rag_harness.records.manifest import without_history

    plain = without_history(experiment)
    return experiment if plain == experiment or experiment in known_experiments(settings) else plain


def is_known(experiment: str, settings: Settings | None = None) -> bool:
    """Return whether there is an experiment of this name, or one whose own answers are its history."""
    return answering(experiment, settings) in known_experiments(settings)


def endpoints_of(settings: Settings) -> dict[str, EndpointSpec]:
    """Return the services of a run that are experiments, by name.

    Raises:
        SettingsError: a service has the name of another experiment.
    """
    return _of_run(settings.endpoints) if settings.endpoints else {}


def configurations_of(settings: Settings) -> dict[str, ConfigurationSpec]:
    """Return the configurations of a run that are experiments, by name.

    Raises:
        SettingsError: a configuration has the name of another experiment, or varies another configuration.
    """
    if not settings.configurations:
        return {}
    found = _of_run(settings.configurations, endpoints_of(settings))
    for spec in found.values():
        _check_no_configuration(spec, found)
    return found


_Spec = TypeVar("_Spec", "EndpointSpec", "ConfigurationSpec")


def _of_run(specs: Sequence[_Spec], others: Collection[str] = ()) -> dict[str, _Spec]:
    from rag_harness.core.errors import SettingsError

    for spec in specs:
        if spec.name in built_in() or spec.name in _registered() or spec.name in others:
            raise SettingsError(
                f"{spec.where}: {spec.name!r} is the name of an experiment that there is. Choose another: "
                f'name = "my_{spec.name}".'
            )
    return {spec.name: spec for spec in specs}


def _check_no_configuration(spec: ConfigurationSpec, known: Collection[str]) -> None:
    from rag_harness.core.errors import SettingsError

    if spec.experiment in known:
        raise SettingsError(
            f"{spec.where}: experiment is {spec.experiment!r}, which is a configuration itself. Write its parameters "
            f"into this file instead."
        )


def _registered() -> dict[str, EntryPoint]:
    from rag_harness.core.registry import registered

    return registered("pipelines")


def builder(experiment: str, settings: Settings | None = None) -> Callable[[Any], Any]:
    """Return the function that builds the pipeline of ``experiment``, which may be a service of ``settings``.

    Raises:
        RegistryError: the experiment is not registered. The message lists all.
    """
    experiment = answering(experiment, settings)
    if settings is not None and experiment in endpoints_of(settings):
        return _build_by("rag_harness.pipelines.endpoint.experiment", endpoints_of(settings)[experiment])
    if settings is not None and experiment in configurations_of(settings):
        return _build_by("rag_harness.pipelines.configuration", configurations_of(settings)[experiment])
    if experiment in built_in():
        shipped = _shipped()[experiment]
        module, _, name = shipped.build.partition(":")
        build: Callable[..., Any] = getattr(import_module(module), name)
        return update_wrapper(partial(build, name=experiment, **shipped.values), build) if shipped.values else build
    if experiment in _registered():
        registered_build: Callable[[Any], Any] = _registered()[experiment].load()
        return registered_build
    from rag_harness.core.errors import RegistryError, unknown

    hint = "A service is one by its description: --rag-endpoint FILE.toml"
    raise RegistryError(f"{unknown('experiment', experiment, known_experiments(settings))} {hint}")


def _build_by(module: str, spec: Any) -> Callable[[Any], Any]:
    build: Callable[..., Any] = import_module(module).build
    return update_wrapper(partial(build, spec), build)


def experiment(name: str, parts: Any) -> Experiment:
    """Build the experiment ``name`` from ``parts``, which are noted. A builder may return only a pipeline.

    ``c1-own`` and ``c1-sim`` are ``c1`` under that name, with its own answers as the history of a conversation.

    Raises:
        RegistryError: the experiment is not registered, or declares other data than the settings give it.
    """
    from dataclasses import replace

    from rag_harness.core.errors import RegistryError
    from rag_harness.records.manifest import OWN_HISTORY

    asked_about = data_of(name, parts.settings)
    built = _built(name, builder(name, parts.settings), asked_about, parts)
    if built.data != asked_about:
        raise RegistryError(
            f"Experiment {name!r} declares the data {built.data!r}, but its module's DATA or pyproject.toml say "
            f"{asked_about!r}. Pass data=DATA to Experiment and to parts.retrieval."
        )
    if answering(name, parts.settings) != name:
        return replace(built, id=name, ingredients={**built.ingredients, **OWN_HISTORY})
    return built


def experiment_of(spec: ConfigurationSpec, parts: Any) -> Experiment:
    """Build the experiment of a configuration, whether or not the settings name it.

    Raises:
        PrerequisiteError: its values do not go together, or something that it names is not there.
    """
    return _built(spec.name, _build_by("rag_harness.pipelines.configuration", spec), "", parts)


def _built(name: str, build: Callable[[Any], Any], data: str, parts: Any) -> Experiment:
    """Build an experiment, with what its parts have noted."""
    from dataclasses import replace

    from rag_harness.core.protocols import Experiment
    from rag_harness.core.registry import is_reusable, noting

    with noting() as made:
        answers = build(parts)
    built = answers if isinstance(answers, Experiment) else Experiment(name, answers, data=data)
    code = {"pipeline": (__name__, build.__module__, type(built.pipeline).__module__), **made.code, **built.code}
    reusable = built.is_reusable and is_reusable(built.pipeline, code)
    return replace(built, ingredients={**made.of, **built.ingredients}, code=code, is_reusable=reusable)


def data_of(name: str, settings: Settings) -> str:
    """Return the name of an experiment's data, from pyproject.toml, the studies, or ``DATA`` of its module.

    An empty name is the run's own data.
    """
    asked = answering(name, settings)
    for spec in settings.data:
        if name in spec.experiments or asked in spec.experiments:
            return spec.name
    if asked in endpoints_of(settings):
        return endpoints_of(settings)[asked].data
    if (configured := configurations_of(settings).get(asked)) is not None:
        return data_of(configured.experiment, settings) if configured.experiment else ""
    if not settings.data or asked not in known_experiments():
        return ""
    if asked in built_in():
        return str(_shipped()[asked].data)
    return str(getattr(import_module(builder(asked).__module__), "DATA", ""))


def result_name(experiment: str) -> str:
    """Return the stem of an experiment's result file."""
    return built_in().get(experiment, experiment)


DERIVED = "derived"
"""Folder beside the result files for trials that were run again with one thing changed."""


def result_path(output: Path, experiment: str) -> Path:
    """Return the result file of ``experiment``. A derived one, ``e3+gold_context``, has it below ``derived/``."""
    if "+" in experiment:
        return output / DERIVED / f"{experiment}.jsonl"
    return output / f"{result_name(experiment)}.jsonl"


def scores_path(output: Path, experiment: str) -> Path:
    """Return the file of ``experiment``'s judged scores; for a derived one it lies beside its rows."""
    from rag_harness.records.scores import SCORES

    if "+" in experiment:
        return output / DERIVED / SCORES / f"{experiment}.jsonl"
    return output / SCORES / f"{result_name(experiment)}.jsonl"
