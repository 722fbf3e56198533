"""Load and check settings from the command line, the environment, ``.env``, the ini file and pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from iniconfig import IniConfig, ParseError

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.settings.configurations import reliability_numbers
from rag_harness.core.settings.endpoints import expect_texts
from rag_harness.core.settings.profiles import (
    Prices,
    Profile,
    check_table_keys,
    parsed_toml,
    profiles,
    pyproject_entry,
    pyproject_table,
)
from rag_harness.core.settings.removed import RARE_TABLE, REMOVED, refuse_removed
from rag_harness.core.settings.roles import (
    ROLES,
    RequestFields,
    check_address,
    check_no_keys,
    named_key,
    prefix_of,
    settings_by_table,
    shown_value,
)
from rag_harness.core.settings.table import Affects, Settings, env_name, options

if TYPE_CHECKING:
    from rag_harness.core.settings.endpoints import EndpointSpec


# Named data, from ``[tool.rag_harness.data.<name>]`` in pyproject.toml.
#
# With it, one run evaluates several systems over several collections, each with its own questions and gates.


@dataclass(frozen=True)
class DataSpec:
    """The paths of one named data, relative to rootdir, and its experiments and gates.

    Attributes:
        name: empty for the run's own data, which the options ``kb_dir``, ``queries`` and ``golden`` name.
        kb: folder of its documents.
        queries: its questions; default: queries.jsonl in the folder.
        golden: its golden set. Questions whose id is in it have the slice ``golden=yes``, the others ``golden=no``.
        experiments: the experiments that get its questions. A registered experiment may name its data itself.
        gates: gates that judge this data alone.
        expect: what each answer to its questions has to keep to, JSON objects.
        instead: the documents from the command line that replace its own. Its gates then do not apply.
    """

    name: str = ""
    kb: str = ""
    queries: str = ""
    golden: str = ""
    experiments: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    instead: str = ""


RESERVED = ("queries", "golden")
"""Names of the run's own cases in file names. No named data may have them."""


_LISTS = {"gates": "t1: recall@5 >= 0.8", "experiments": "t1"}


def named_data(rootdir: Path) -> dict[str, DataSpec]:
    """Return the named data of pyproject.toml in ``rootdir``.

    Raises:
        SettingsError: a table or a value has the wrong form; names the key.
    """
    found = pyproject_table(rootdir, "data", "one named set of data")
    return {name: _spec(name, table) for name, table in found.items()}


def _spec(name: str, table: Any) -> DataSpec:
    where = f"pyproject.toml, [tool.rag_harness.data.{name}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table with kb, and maybe queries, golden and gates.")
    if name in RESERVED:
        raise SettingsError(f"{where}: the name is taken by the run's own data. Choose another.")
    check_table_keys(where, table, {each.name for each in fields(DataSpec)} - {"name", "instead"})
    for key, value in table.items():
        _check(where, key, value)
    if not table.get("kb"):
        raise SettingsError(f"{where} has no kb: name the folder of its documents.")
    lists = {key: tuple(table.get(key, ())) for key in _LISTS}
    expect = expect_texts(where, table.get("expect", []))
    return DataSpec(**{"name": name, **table, **lists, "expect": expect})


def _check(where: str, key: str, value: Any) -> None:
    if key == "expect":
        expect_texts(where, value)
    elif key in _LISTS:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise SettingsError(f"{where}: {key} is {value!r}: expected a list of strings, [{_LISTS[key]!r}].")
    elif not isinstance(value, str):
        raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")


# Options of a user's own parts: ``[tool.rag_harness.options.<name>]`` in pyproject.toml, set with ``--rag-define``.
#
# An experiment, chunker or reranker reads them as ``settings.own["name"]``. Each says what it affects; the fingerprint
# contains it accordingly.

_KEYS = ("default", "affects", "help")
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class OwnOption:
    """A declared option and its value. The value has the type of the default."""

    name: str
    value: str | int | float | bool
    affects: Affects
    help: str = ""


def own_options(rootdir: Path, given: Sequence[str]) -> tuple[OwnOption, ...]:
    """Return the options declared in pyproject.toml, with the values of ``given``, which are texts ``name=value``.

    Raises:
        SettingsError: a declaration or a value cannot be used, or a name is not declared.
    """
    table = pyproject_table(rootdir, "options", "one an option")
    declared = {name: _declared(name, about) for name, about in table.items()}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise SettingsError(f"rag_define is {text!r}: expected NAME=VALUE.")
        if name not in declared:
            raise SettingsError(
                f"rag_define {text!r}: {unknown('option', name, declared)} Declare it in pyproject.toml: "
                f"[tool.rag_harness.options.{name}] with default and affects."
            )
        declared[name] = replace(declared[name], value=_read(declared[name], value))
    return tuple(declared.values())


def _declared(name: str, about: Any) -> OwnOption:
    where = f"pyproject.toml, [tool.rag_harness.options.{name}]"
    if not isinstance(about, Mapping):
        raise SettingsError(f"{where} is {about!r}: expected a table with default and affects.")
    check_table_keys(where, about, _KEYS)
    default, affects = about.get("default"), str(about.get("affects", ""))
    if not isinstance(default, (str, int, float)):
        raise SettingsError(f"{where}: default is {default!r}: expected a string, a number or a boolean.")
    known: dict[str, Affects] = {kind: kind for kind in get_args(Affects)}
    if affects not in known:
        raise SettingsError(f"{where}: affects says what results it changes. {unknown('value', affects, known)}")
    return OwnOption(name, default, known[affects], str(about.get("help", "")))


def _read(option: OwnOption, text: str) -> str | int | float | bool:
    kind = type(option.value)
    try:
        return _BOOLEANS[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise SettingsError(
            f"rag_define {option.name}={text}: expected {kind.__name__}, as its default {option.value!r} is."
        ) from None


# Options from the suite's ini file, for commands without pytest, so that they serve what the suite has evaluated.

IniTable = Mapping[str, Any]
_OF_QUESTIONS = ("query_types",)
"""Lists that do not belong to a run."""


def ini_values(folder: Path) -> dict[str, Any]:
    """Return the options that the suite in ``folder`` sets.

    Lists (gates, slices) belong to a run and are left out, apart from ``query_types``, which is about the questions.

    Raises:
        SettingsError: the file cannot be read, or sets an option that was removed.
    """
    names = {f"rag_{each.name}": each.name for each in options() if each.default != () or each.name in _OF_QUESTIONS}
    found = _found(folder)
    for key in found:
        if key.startswith("rag_"):
            refuse_removed(f"The ini key {key}", key.removeprefix("rag_"))
    return {names[key]: value for key, value in found.items() if key in names and value not in ("", [])}


def keys_of(file: Path) -> list[str]:
    """Return the keys in the section of pytest of an ini file, whatever its name is.

    Raises:
        SettingsError: the file cannot be read.
    """
    read = dict(_FILES).get(file.name) or (_pyproject if file.suffix == ".toml" else dict(_FILES)["pytest.ini"])
    try:
        return list(read(file) or {})
    except (OSError, ParseError, ValueError) as error:
        raise SettingsError(f"{file.name} cannot be read: {error}") from error


def _found(folder: Path) -> IniTable:
    for name, read in _FILES:
        file = folder / name
        try:
            table = read(file) if file.is_file() else None
        except (ParseError, ValueError) as error:
            raise SettingsError(f"{file.name} cannot be read: {error}") from error
        if table is not None:
            return table
    return {}


def _section(file: Path, name: str) -> IniTable | None:
    found = IniConfig(str(file))
    return dict(found[name].items()) if name in found else None


def _toml(file: Path) -> IniTable:
    return parsed_toml(file.read_text(encoding="utf-8"))


def _pyproject(file: Path) -> IniTable | None:
    pytest: IniTable | None = _toml(file).get("tool", {}).get("pytest")
    return None if pytest is None else pytest.get("ini_options", pytest)


_FILES: tuple[tuple[str, Callable[[Path], IniTable | None]], ...] = (
    ("pytest.toml", lambda file: _toml(file).get("pytest", {})),
    (".pytest.toml", lambda file: _toml(file).get("pytest", {})),
    ("pytest.ini", lambda file: _section(file, "pytest") or {}),
    (".pytest.ini", lambda file: _section(file, "pytest") or {}),
    ("pyproject.toml", _pyproject),
    ("tox.ini", lambda file: _section(file, "pytest")),
    ("setup.cfg", lambda file: _section(file, "tool:pytest")),
)
"""Candidates in pytest's order. The first existing file with its section counts. Files named after pytest need none."""


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def seconds_in(text: str, name: str) -> float:
    """Return the seconds of a duration.

    Args:
        text: a number and s, m, h, d or w.
        name: the option, as the message names it.

    Raises:
        SettingsError: the text is not a duration, or is zero.
    """
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds:
        raise SettingsError(
            f"{name} is {text!r}: expected a duration, a number with s, m, h, d or w behind it. Example: 7d."
        )
    return seconds


# Loading and checking of settings. Order: command line > environment > ``.env`` > ini > profile > default.

_SHORTEST_REFUSAL = 3
"""Fewest characters of a phrase: a shorter one would be found in answers that decline nothing."""

_REMOVED = {
    (
        "panel",
        "calibrated",
    ): "a gate on measure~calibrated corrects any rule's figure; take mean or median",
}
"""What is used in place of a value that was removed."""


_PLACED = frozenset(env_name(each) for each in fields(Settings) if "place" in each.metadata)
"""Names of options that no variable sets."""


def load_settings(
    command_line: Mapping[str, Any] | None = None,
    ini: Mapping[str, Any] | None = None,
    rootdir: Path | str = ".",
) -> Settings:
    """Read and validate the settings from every source.

    Raises:
        SettingsError: a value cannot be used or a profile is unknown; names the option, the value and its variable.
    """
    values, given = _validated(command_line or {}, ini or {}, Path(rootdir))
    settings = _golden_of_questions(Settings(**{**values, "rootdir": str(rootdir)}), ini or {})
    _refuse_keys(settings)
    if settings.dry_run:
        settings = _replaying(settings, command_line or {})
    if settings.chunk_overlap >= settings.chunk_size:
        raise SettingsError(
            f"chunk_overlap is {settings.chunk_overlap}, but must be less than chunk_size {settings.chunk_size}."
        )
    if settings.max_age:
        seconds_in(settings.max_age, "--rag-max-age")
    if settings.prices:
        Prices.load(settings.prices_path)  # an error comes now, and not in the first row
    defined = own_options(Path(rootdir), settings.define)
    data, endpoints = _data(settings, command_line or {}), _endpoints(settings)
    numbers = reliability_numbers(Path(rootdir))
    settings = replace(
        settings,
        data=data,
        defined=defined,
        endpoints=endpoints,
        reliability_numbers=numbers,
        refusals=_refusals(Path(rootdir)),
    )
    if settings.config:
        from rag_harness.core.settings.configurations import read_configurations

        settings = replace(settings, configurations=read_configurations(Path(rootdir), settings.config))
    settings = _with_profile(settings, given)
    _refuse_keys(settings)  # of the profile, too
    return _with_named_judge(_with_named_key(settings))


def _refuse_keys(settings: Settings) -> None:
    """Refuse a key outside of the settings that are keys: all others are written into reports, logs and records."""
    for each in fields(settings):
        if each.metadata.get("secret") or each.metadata.get("derived"):
            continue
        value = getattr(settings, each.name)
        if each.metadata.get("address"):
            variable = each.metadata["key"]
            check_address(each.name, value, f"Put it into {variable}." if variable else "Leave it out.")
        check_no_keys(each.name, value)


def _golden_of_questions(settings: Settings, ini: Mapping[str, Any]) -> Settings:
    """Let the golden suite ask other questions, too, where the ini file names one file for both."""
    is_one = ini.get("golden") and ini["golden"] == ini.get("queries")
    follows = is_one and settings.golden == ini["golden"] and settings.queries.lower().endswith(".jsonl")
    return replace(settings, golden=settings.queries) if follows else settings


def _data(settings: Settings, command_line: Mapping[str, Any]) -> tuple[DataSpec, ...]:
    """Return the named data. A knowledge base on the command line replaces all of them."""
    named = named_data(Path(settings.rootdir)).values()
    if "kb_dir" not in command_line:
        return tuple(named)
    kb, queries, golden = settings.kb_dir, settings.queries, settings.golden
    return tuple(replace(spec, kb=kb, queries=queries, golden=golden, instead=kb) for spec in named)


def _endpoints(settings: Settings) -> tuple[EndpointSpec, ...]:
    """Return the services that are experiments. Without any, their module is not imported."""
    rootdir = Path(settings.rootdir)
    if not settings.endpoint and not pyproject_table(rootdir, "endpoints", "one a service"):
        return ()
    from rag_harness.core.settings.endpoints import read_endpoints

    return read_endpoints(rootdir, settings.endpoint)


def _refusals(rootdir: Path) -> tuple[str, ...]:
    """Return the phrases that decline besides those that are known: ``refusals`` of pyproject.toml, in their order."""
    found = pyproject_entry(rootdir, "refusals", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise SettingsError(f"pyproject.toml: tool.rag_harness.refusals is {found!r}: expected a list of texts.")
    for phrase in found:
        if len(phrase.strip()) < _SHORTEST_REFUSAL:
            raise SettingsError(
                f"pyproject.toml: tool.rag_harness.refusals has {phrase!r}: write {_SHORTEST_REFUSAL} characters or "
                f"more."
            )
    return tuple(dict.fromkeys(found))


def _validated(
    command_line: Mapping[str, Any], ini: Mapping[str, Any], rootdir: Path
) -> tuple[dict[str, Any], Collection[str]]:
    """Return the values of all options, and the names of those that are given."""
    from pydantic import ValidationError

    model, dotenv = _pydantic_model(), rootdir / ".env"
    try:
        given = {**_given(_variables_of(dotenv)), **_given(os.environ)}
        _refuse_variables(given)
        known = [name for name in map(env_name, fields(Settings)) if name not in _PLACED]
        named = {name: given[name.lower()] for name in known if name.lower() in given}
        found = model(**(_by_env_name(_rare(rootdir)) | _by_env_name(ini) | named | _by_env_name(command_line)))
        return dict(found.model_dump()), found.model_fields_set
    except ValidationError as error:
        by_name = {env_name(each): each for each in fields(Settings)}
        lines = [_explain(line, by_name[str(line["loc"][0])]) for line in error.errors()]
        raise SettingsError("\n".join(lines)) from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{dotenv}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None


def _variables_of(dotenv: Path) -> Mapping[str, str | None]:
    if not dotenv.is_file():
        return {}
    from dotenv import dotenv_values

    return dotenv_values(dotenv, encoding="utf-8-sig")


def _given(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return variables by their names in small letters, without empty ones, which give no value."""
    return {name.lower(): value for name, value in variables.items() if value}


def _refuse_variables(names: Collection[str]) -> None:
    """Refuse variables of options that were removed: they would change nothing, without notice."""
    given = {name.upper() for name in names}
    for name in REMOVED:
        if (variable := f"RAG_{name.upper()}") in given:
            refuse_removed(f"The variable {variable}", name)


def _rare(rootdir: Path) -> Mapping[str, Any]:
    """Return the options of ``[tool.rag_harness.settings]``."""
    table = pyproject_table(rootdir, "settings", "one value an option")
    check_table_keys(
        f"pyproject.toml, {RARE_TABLE}",
        table,
        [each.name for each in fields(Settings) if each.metadata.get("place") == RARE_TABLE],
    )
    return table


def _by_env_name(given: Mapping[str, Any]) -> dict[str, Any]:
    return {env_name(each): given[each.name] for each in fields(Settings) if each.name in given}


def _explain(line: Any, each: Field[Any]) -> str:
    shown = "…" if each.metadata.get("secret") else shown_value(line["input"])
    where = f"{env_name(each)} in the environment or .env"
    if "place" in each.metadata:
        return f"{each.name} is {shown}: {line['msg']}. Set it in {each.metadata['place']} of pyproject.toml."
    if each.metadata["flag"] and not each.metadata.get("secret"):
        where = f"--rag-{each.name.replace('_', '-')}, {env_name(each)} or the ini key rag_{each.name}"
    removed = _REMOVED.get((each.name, str(line["input"])))
    return f"{each.name} is {shown}: {removed or line['msg']}. Set it with {where}."


def _replaying(settings: Settings, command_line: Mapping[str, Any]) -> Settings:
    if command_line.get("mode", "replay") != "replay":
        raise SettingsError(
            f"DRY_RUN is true, which is mode replay, but --rag-mode asks for {settings.mode}. "
            f"Leave --rag-mode out, or set DRY_RUN=false."
        )
    return replace(settings, mode="replay")


@cache
def _pydantic_model() -> Any:
    """Build the model from the table, once: it takes 10 ms.

    It takes the values that it is given and reads no source itself, because each run has sources of its own.
    """
    from pydantic import BaseModel, BeforeValidator, create_model
    from pydantic import Field as Constraint

    hints = get_type_hints(
        Settings,
        localns={
            "DataSpec": DataSpec,
            "OwnOption": OwnOption,
            **dict.fromkeys(("ConfigurationSpec", "EndpointSpec", "JudgeTable", "ReliabilityNumbers"), Any),
        },
    )
    declared: dict[str, Any] = {}
    for each in (each for each in fields(Settings) if not each.metadata.get("derived")):
        limits = each.metadata.get("limits", {})
        # A field is filled by its variable only. By its bare name, it would take MODE or TIMEOUT of any CI.
        is_list = each.default == ()
        hint = Annotated[hints[each.name], BeforeValidator(_listed)] if is_list else hints[each.name]
        declared[each.name] = (hint, Constraint(each.default, validation_alias=env_name(each), **limits))
    return create_model("RagSettings", __base__=BaseModel, **declared)


def _listed(value: Any) -> Any:
    """Split a variable with several values: one in each line, or separated by ``;``."""
    return [each.strip() for each in re.split(r"[;\n]", value) if each.strip()] if isinstance(value, str) else value


def _with_profile(settings: Settings, given: Collection[str]) -> Settings:
    known = profiles(Path(settings.rootdir))
    if settings.profile not in known:
        raise SettingsError(unknown("profile", settings.profile, known))
    profile = known[settings.profile]
    for begin in map(prefix_of, ROLES):
        if getattr(settings, f"{begin}_base_url") not in ("", getattr(profile, f"{begin}_base_url")):
            key: dict[str, Any] = {f"{begin}_api_key_env": ""}
            profile = replace(profile, **key)  # a key goes only to its own endpoint
    if settings.judge_base_url and not settings.judge_model:
        profile = replace(profile, judge_model="")  # a named server is asked for the model of the answers
    unset = {each.name: getattr(profile, each.name) for each in fields(Profile) if not getattr(settings, each.name)}
    answer = RequestFields.read(profile.chat_request)
    sampling = {name: value for name, value in answer.sampling.items() if name not in given}
    return replace(settings, **{**unset, **sampling, "chat_request": answer.without_options(given).text})


def _with_named_key(settings: Settings) -> Settings:
    """Look up the keys by the names in the settings. ``.env`` may also have names that are not options."""
    for role in map(prefix_of, ROLES):
        name = getattr(settings, f"{role}_api_key_env")
        if name and not getattr(settings, f"{role}_api_key"):
            key: dict[str, Any] = {f"{role}_api_key": named_key(name, settings.rootdir)}
            settings = replace(settings, **key)
    return settings


def _with_named_judge(settings: Settings) -> Settings:
    """Let one judge with a table, ``--rag-judge=fused@local``, be the judge of the run."""
    if "," in settings.judge:
        return settings
    judge, _, name = settings.judge.partition("@")
    table = next((each for each in settings.judge_tables if each.name == name), None)
    return settings_by_table(replace(settings, judge=judge), table) if table else settings
