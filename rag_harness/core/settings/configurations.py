"""Configurations as experiments, described by values of parameters in the TOML files of ``--rag-config``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.endpoints import check_name
from rag_harness.core.settings.profiles import check_table_keys, toml_file
from rag_harness.core.settings.table import Settings

ParameterValue: TypeAlias = "str | int | float | bool"


@dataclass(frozen=True)
class ConfigurationSpec:
    """One configuration.

    Attributes:
        name: the name of the experiment.
        values: parameters and their values, by name; those that are not named are as the options say.
        experiment: the experiment or service that has the parameters. Empty: the pipeline that comes with the package.
        where: the file that it was read from.
    """

    name: str
    values: tuple[tuple[str, ParameterValue], ...] = ()
    experiment: str = ""
    where: str = ""

    @property
    def by_name(self) -> Mapping[str, Any]:
        """The values by parameter."""
        return dict(self.values)


# Configurations as experiments: reads the files of ``--rag-config``, and knows which parameters there are.
#
# A parameter is an option that changes what is found or answered, or one of ``SHAPE``, which only a configuration has.
# Those of a service begin with ``body.`` and name a place in what it is sent: ``body.settings.top_k``.

OF_SERVICE = "body."
"""Begin of the parameters of a service."""
RETRIEVERS = ("dense", "bm25", "hybrid")
SHAPE: Mapping[str, type] = {"retriever": str, "dense_weight": float, "rerank": bool, "prompt": str}
"""Parameters that only a configuration has.

``retriever``: what finds the candidates. ``dense_weight``: of vectors in ``hybrid``, from 0 to 1; words have the rest.
``rerank``: whether a reranker orders them. ``prompt``: the experiment whose prompts are used, ``e3``.
"""
BUILT_BY = ("chunker", "chunk_size", "chunk_overlap", "embed_model", "index")
"""Options that decide what an index is made of."""
FOUND_BY = ("top_k", "candidates", "rerank_model")
ANSWERED_BY = ("chat_model", "temperature", "max_output_tokens")
_KINDS = {str: "a text", float: "a number", bool: "true or false"}
_JSON_TYPES = {str: "string", float: "number", bool: "boolean"}
_ALONE = (*SHAPE, *BUILT_BY, *FOUND_BY, *ANSWERED_BY)
_OF_EXPERIMENTS = ("retrieval", "reranking", "generation")


def read_configurations(rootdir: Path, files: Sequence[str]) -> tuple[ConfigurationSpec, ...]:
    """Return the configurations of ``files``, whose paths start from ``rootdir``.

    Raises:
        SettingsError: a file, a parameter or a value is not usable, or two have one name. The message names it.
    """
    known: dict[str, ConfigurationSpec] = {}
    for spec in (read_configuration(rootdir / file) for file in files):
        if spec.name in known:
            raise SettingsError(
                f"Two configurations are called {spec.name!r}: {known[spec.name].where} and {spec.where}. "
                f'Give one of them another name: name = "…".'
            )
        known[spec.name] = spec
    return tuple(known.values())


def read_configuration(file: Path) -> ConfigurationSpec:
    """Return the configuration of a TOML file. Without a name in it, it is named after the file.

    Raises:
        SettingsError: the file cannot be read, or has a key, a parameter or a value that cannot be used.
    """
    table, where = toml_file(file, f"--rag-config {file}"), str(file)
    check_table_keys(where, table, ("name", "experiment", "parameters"))
    name = table.get("name", file.stem)
    check_name(name, where)
    experiment = experiment_in(where, table)
    parameters = table.get("parameters", {})
    if not isinstance(parameters, Mapping):
        raise SettingsError(f"{where}: parameters is {parameters!r}: expected a table, [parameters].")
    values = {key: checked_value(where, key, value, experiment) for key, value in flat(parameters).items()}
    return ConfigurationSpec(name, tuple(sorted(values.items())), experiment, where)


def experiment_in(where: str, table: Mapping[str, Any]) -> str:
    """Return the experiment that a table names; empty where it names none.

    Raises:
        SettingsError: the value is not a valid name.
    """
    experiment = table.get("experiment", "")
    if not isinstance(experiment, str):
        raise SettingsError(f"{where}: experiment is {experiment!r}: expected the name of an experiment.")
    return experiment


def flat(table: Mapping[str, Any], begin: str = "") -> dict[str, Any]:
    """Return a table whose tables ``body`` are written as one name: ``body.top_k`` for ``{"body": {"top_k": …}}``."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{begin}{key}"
        is_part = isinstance(value, Mapping) and f"{name}.".startswith(OF_SERVICE) and "values" not in value
        found |= flat(value, f"{name}.") if is_part else {name: value}
    return found


def known_parameters(experiment: str) -> list[str]:
    """Return the names of the parameters of an experiment; of the package's own pipeline, where it is empty."""
    if not experiment:
        return sorted(_ALONE)
    # A profile is many options, which are looked up before there are configurations.
    about = {each.name: each.metadata for each in fields(Settings)}
    affecting = [name for name, each in about.items() if each["affects"] in _OF_EXPERIMENTS and "derived" not in each]
    return sorted(name for name in affecting if name != "profile")


def checked_value(where: str, name: str, value: Any, experiment: str) -> ParameterValue:
    """Return the value of a parameter.

    Raises:
        SettingsError: the parameter does not exist, or cannot have this value.
    """
    if name.startswith(OF_SERVICE) and experiment:
        if not isinstance(value, (str, int, float, bool)):
            raise SettingsError(f"{where}: {name} is {value!r}: expected a text, a number, true or false.")
        return value
    known = known_parameters(experiment)
    if name not in known:
        beside = f' Parameters of a service begin with "{OF_SERVICE}".' if experiment else ""
        raise SettingsError(f"{where}: {unknown('parameter', name, known)}{beside}")
    return _checked_shape(where, name, value) if name in SHAPE else _checked_option(where, name, value)


def _checked_shape(where: str, name: str, said: Any) -> ParameterValue:
    kind = SHAPE[name]
    value: Any = float(said) if kind is float and type(said) is int else said
    if not isinstance(value, kind):
        raise SettingsError(f"{where}: {name} is {said!r}: expected {_KINDS[kind]}.")
    if name == "retriever" and value not in RETRIEVERS:
        raise SettingsError(f"{where}: {unknown('retriever', str(value), RETRIEVERS)}")
    if name == "dense_weight" and not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise SettingsError(f"{where}: dense_weight is {said}: expected a number from 0 to 1.")
    return value  # type: ignore[return-value]


def _checked_option(where: str, name: str, value: Any) -> ParameterValue:
    from pydantic import ValidationError

    try:
        checked: ParameterValue = _adapter(name).validate_python(value)
    except ValidationError as error:
        raise SettingsError(f"{where}: {name} is {value!r}: {error.errors()[0]['msg']}.") from None
    return checked


def parameter_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a value of a known parameter."""
    if name == "retriever":
        return {"enum": [*RETRIEVERS]}
    if name == "dense_weight":
        return {"type": "number", "minimum": 0, "maximum": 1}
    if name in SHAPE:
        return {"type": _JSON_TYPES[SHAPE[name]]}
    found: dict[str, Any] = _adapter(name).json_schema()
    return found


@lru_cache
def _adapter(name: str) -> Any:
    from typing import Annotated

    from pydantic import ConfigDict, Field, TypeAdapter

    about = next(each for each in fields(Settings) if each.name == name)
    hints = get_type_hints(
        Settings,
        localns=dict.fromkeys(
            ("ConfigurationSpec", "DataSpec", "EndpointSpec", "JudgeTable", "OwnOption", "ReliabilityNumbers"), Any
        ),
    )
    limited: Any = Annotated[hints[name], Field(**about.metadata.get("limits", {}))]
    return TypeAdapter(limited, config=ConfigDict(strict=True))
