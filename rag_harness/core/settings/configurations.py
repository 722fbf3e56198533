"""Configurations as experiments, and the thresholds and weights of the reliability engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.endpoints import check_name
from rag_harness.core.settings.profiles import check_table_keys, pyproject_table, toml_file
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


# ``[tool.rag_harness.reliability]`` of pyproject.toml has the tables ``thresholds``, ``strict``, ``weights`` and
# ``formula``.

WEAK_SIGNALS = ("LOW_RELEVANCE", "LOW_COVERAGE")
"""Reasons of signals below ``relevance`` and ``coverage``: an answer with one does not pass, and is not withheld."""
_TABLE = "tool.rag_harness.reliability"
_WEIGHT_ERROR = 1e-6
"""By how much a sum of weights may differ from 1: 0.7 + 0.2 + 0.1 is not exactly 1."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the decisions.

    Attributes:
        go_on: retrieval quality above which the model is asked.
        fallback: retrieval quality below which the model is not asked. Between the two, a second search comes first.
        relevance: relevance below which the best source counts as hardly relevant.
        coverage: coverage below which the sources count as lacking words of the question.
        grounded: groundedness below which the whole answer counts as ungrounded.
        claim: probability below which a single claim counts as ungrounded.
        agreement: agreement below which two answers to one question count as different.
        passed: confidence from which an answer passes without a warning.
        warned: confidence below which no answer is given.
    """

    go_on: float = 0.55
    fallback: float = 0.35
    relevance: float = 0.35
    coverage: float = 0.5
    grounded: float = 0.7
    claim: float = 0.5
    agreement: float = 0.5
    passed: float = 0.6
    warned: float = 0.2


NORMAL = Thresholds()
STRICT = Thresholds(
    go_on=0.65,
    fallback=0.45,
    relevance=0.5,
    coverage=0.6,
    grounded=0.8,
    claim=0.6,
    agreement=0.7,
    passed=0.7,
    warned=0.4,
)


@dataclass(frozen=True, slots=True)
class QualityWeights:
    """Weights of the signals in the retrieval quality. Their sum is 1. The defaults are set, not fitted."""

    relevance: float = 0.4
    margin: float = 0.2
    coverage: float = 0.2
    dispersion: float = 0.2


@dataclass(frozen=True, slots=True)
class FormulaWeights:
    """Weights in a confidence without calibration. The defaults are set, not fitted.

    They are: ``alpha`` of retrieval quality, ``beta`` of groundedness; ``gamma`` of contradiction is taken off. The sum
    of alpha and beta is 1.
    """

    alpha: float = 0.5
    beta: float = 0.5
    gamma: float = 0.5


@dataclass(frozen=True, slots=True)
class ReliabilityNumbers:
    """All numbers on which the decisions of the reliability engine depend; ``strict`` are the limits of mode strict."""

    thresholds: Thresholds = NORMAL
    strict: Thresholds = STRICT
    weights: QualityWeights = QualityWeights()
    formula: FormulaWeights = FormulaWeights()


USUAL = ReliabilityNumbers()
"""The numbers of a suite that sets none."""
_USUAL_BY_KIND: Mapping[str, Any] = {each.name: getattr(USUAL, each.name) for each in fields(USUAL)}


def reliability_numbers(rootdir: Path) -> ReliabilityNumbers | None:
    """Return the numbers of a suite, whose pyproject.toml is in ``rootdir``, or None where it sets none.

    Raises:
        SettingsError: a name is not known, a value is not a number from 0 to 1, or the numbers contradict each other.
    """
    tables = pyproject_table(rootdir, "reliability", "thresholds, strict, weights and formula")
    if not tables:
        return None
    check_table_keys(f"pyproject.toml, [{_TABLE}]", tables, _USUAL_BY_KIND)
    given = {kind: _of_table(kind, tables.get(kind, {})) for kind in _USUAL_BY_KIND}
    found = ReliabilityNumbers(**{kind: replace(usual, **given[kind]) for kind, usual in _USUAL_BY_KIND.items()})
    for problem in _problems(found):
        raise SettingsError(f"The numbers of the reliability engine do not fit together: {problem}")
    return found


def _of_table(kind: str, table: Any) -> dict[str, float]:
    where = f"pyproject.toml, [{_TABLE}.{kind}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table of numbers.")
    check_table_keys(where, table, asdict(_USUAL_BY_KIND[kind]))
    return {name: _share(f"{where}: {name}", value) for name, value in table.items()}


def _share(where: str, value: Any) -> float:
    # NaN is neither. TOML has booleans, which Python takes for numbers.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise SettingsError(f"{where} is {value!r}: expected a number from 0 to 1.")
    return float(value)


def _problems(numbers: ReliabilityNumbers) -> Iterator[str]:
    for kind, names in (("weights", tuple(asdict(numbers.weights))), ("formula", ("alpha", "beta"))):
        values = {name: getattr(getattr(numbers, kind), name) for name in names}
        if abs(sum(values.values()) - 1) > _WEIGHT_ERROR:
            said = ", ".join(f"{name} {value:g}" for name, value in values.items())
            yield f"the sum of {said} is {sum(values.values()):g}, but must be 1."
    for kind in ("thresholds", "strict"):
        limits = getattr(numbers, kind)
        for low, high in (("fallback", "go_on"), ("warned", "passed")):
            if getattr(limits, low) > getattr(limits, high):
                yield f"in {kind}, {low} {getattr(limits, low):g} is more than {high} {getattr(limits, high):g}."
    for name, value in asdict(numbers.thresholds).items():
        strict = getattr(numbers.strict, name)
        if value > strict:
            yield f"{name} is {value:g}, but strict.{name} is {strict:g}: mode strict may not ask for less."
