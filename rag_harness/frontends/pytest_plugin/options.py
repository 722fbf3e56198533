"""Options on the command line and in the ini file, and whether they select the whole run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field, replace
from typing import TYPE_CHECKING, Any, Literal

from rag_harness.core.errors import DataError, SettingsError, meant
from rag_harness.core.settings import Settings, env_name, help_sentence, options
from rag_harness.core.settings.removed import refuse_removed

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


GROUPS: Mapping[str, tuple[str, ...]] = {
    "first steps": (
        *("kb_dir", "queries", "run", "limit", "profile", "mode", "judge", "judge_model", "output", "report"),
    ),
    "answers": (
        *("map", "bad_queries", "query_types", "unreadable", "charset", "language", "dataset", "project", "endpoint"),
        *("config", "define", "embed_model", "embed_max_tokens", "embed_backend", "device", "chunker", "chunk_size"),
        *("chunk_overlap", "near_duplicates", "index", "qdrant_url", "top_k", "candidates", "history", "repeats"),
        *("golden", "retriever", "k", "strict", "misses", "export", "tune"),
    ),
    "gates": (
        *("gate", "expect", "gate_partial", "gate_unreviewed", "verdict", "family", "undecided", "not_judged"),
        *("foreign_text", "max_age", "max_unmeasured", "cluster", "population", "stop_early", "affected_by"),
        *("save", "compare"),
    ),
    "judging": (
        *("measures", "panel", "judge_repeats", "slices", "headline", "sections", "attribute", "metamorphic"),
        *("metamorphic_cases", "otlp"),
    ),
    "recording": ("rerecord", "abridge", "overwrite", "resume", "cache_dir", "logs"),
    "scale": ("concurrency", "engine", "ray_address", "timeout", "deadline", "rpm", "tpm", "budget", "prices"),
}
"""The groups of ``pytest --help``, with the names of their options."""


def add_options(parser: pytest.Parser) -> None:
    """Declare ``--rag-*`` and ``rag_*``."""
    known = {each.name: each for each in options()}
    for title, names in GROUPS.items():
        group = parser.getgroup(f"rag {title}", f"rag_harness, {title}")
        for name in names:
            _declare(parser, group, known[name])


def _declare(parser: pytest.Parser, group: pytest.OptionGroup, each: Field[Any]) -> None:
    name, flag, text = f"rag_{each.name}", _flag(each.name), help_sentence(each).replace("%", "%%")
    about: dict[str, Any] = {"dest": name, "default": None, "help": f"{text} [{env_name(each)}]"}
    if each.default is False:
        about["action"] = "store_true"
    elif each.default == ():
        about["action"] = "append"
    group.addoption(flag, *SHORT.get(each.name, ()), **about)
    kind: Literal["linelist", "string"] = "linelist" if each.default == () else "string"
    parser.addini(name, help_sentence(each), type=kind, default=None)


SHORT = {"kb_dir": ("--rag-kb",)}
"""Second names of options, quicker to type."""


def hint_at_misspelt(parser: pytest.Parser, args: Sequence[str]) -> None:
    """Put what was probably meant by a misspelt option beside what pytest shows if it refuses the command line.

    Pytest itself says only which arguments it does not know, and a conftest may declare options after this.

    Raises:
        SettingsError: an option was removed; says what is used in its place.
    """
    from rag_harness.core.errors import name_meant

    known = [flag for each in options() for flag in (_flag(each.name), *SHORT.get(each.name, ()))]
    named = [name for each in args if (name := each.partition("=")[0]).startswith("--rag-")]
    for name in named:
        refuse_removed(name, name.removeprefix("--rag-").replace("-", "_"))
    near = [near for name in named if name not in known and (near := name_meant(name, known))]
    if near:
        parser.extra_info["did you mean"] = ", ".join(near)


def _flag(name: str) -> str:
    return f"--rag-{name.replace('_', '-')}"


def command_line(config: pytest.Config) -> dict[str, Any]:
    """Return the options that were given on the command line."""
    given = {each: config.getoption(f"rag_{each.name}", None) for each in options()}
    here = config.invocation_params.dir
    return {
        each.name: _from_here(here, each.name, value) if each.metadata.get("path") or each.name in _SCHEMED else value
        for each, value in given.items()
        if value is not None
    }


_SCHEMED = ("dataset", "export")
"""Options whose value is a path after a scheme: ``beir:DIR``."""


def _from_here(here: Path, name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [str(here / path) for path in value]
    scheme, colon, path = value.partition(":") if name in _SCHEMED else ("", "", value)
    return f"{scheme}{colon}{here / path}" if path else value


def ini(config: pytest.Config) -> dict[str, Any]:
    """Return the options that the ini file sets."""
    given = {each.name: config.getini(f"rag_{each.name}") for each in options()}
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def output_asked(config: pytest.Config) -> Path:
    """Return the output folder that is named. It is known even where other settings cannot be read."""
    each = next(each for each in options() if each.name == "output")
    named = command_line(config).get("output") or os.environ.get(env_name(each)) or ini(config).get("output")
    return settings_folder(config) / str(named or each.default)


def settings_folder(config: pytest.Config) -> Path:
    """Return the folder that relative paths of settings start from; ``.env`` lies there, too."""
    # config.rootpath would be wrong: with `--rag-kb DIR`, pytest takes DIR for a test path and its parent for rootdir.
    return config.inipath.parent if config.inipath else config.invocation_params.dir


def command_said(config: pytest.Config) -> str:
    """Return the command of this run."""
    return shlex.join(["pytest", *map(str, config.invocation_params.args)])


def is_used(config: pytest.Config) -> bool:
    """Return whether this suite uses the plugin; if not, the plugin stays inert."""
    return bool(command_line(config) or ini(config))


def names_questions(settings: Settings, from_ini: dict[str, Any]) -> bool:
    """Return whether the command line or the environment names other questions than the ini file."""
    return bool(settings.queries) and settings.queries != from_ini.get("queries", "")


def _check_ini(config: pytest.Config) -> None:
    """Refuse keys of the ini file that begin like ours and nobody has declared. A misspelt gate would stop nothing."""
    from rag_harness.core.settings.loading import keys_of

    for key in keys_of(config.inipath) if config.inipath else ():
        if key.startswith("rag_"):
            refuse_removed(f"{config.inipath}: {key}", key.removeprefix("rag_"))
        if key.startswith("rag_") and not _is_declared(config, key):
            near = meant(key, [f"rag_{each.name}" for each in options()])
            raise SettingsError(f"{config.inipath}: {key} is not an option.{near} pytest --help has all.")


def _is_declared(config: pytest.Config, key: str) -> bool:
    try:
        config.getini(key)
    except ValueError:
        return False
    return True


def _check_questions(settings: Settings, from_ini: dict[str, Any]) -> None:
    """Refuse questions that somebody has named for this run and that are not there, whichever tests would read them."""
    if names_questions(settings, from_ini) and not settings.queries_path.is_file():
        from rag_harness.core.files import meant_beside

        file = settings.queries_path
        raise DataError(f"No file {file}.{meant_beside(file)} Name your questions with --rag-queries FILE.")


def read_settings(config: pytest.Config) -> Settings:
    """Return the effective settings of this run.

    Raises:
        SettingsError: an option, ini value or environment variable cannot be used.
        DataError: the file of questions that the command line or the environment names is not there.
    """
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.models.dry_run import of_dry_run
    from rag_harness.runs.gates.configuration import gates_by_data

    base = settings_folder(config)
    _check_ini(config)
    given, from_ini = command_line(config), ini(config)
    asked = given.pop("gate", [])
    settings = of_dry_run(load_settings(given, from_ini, base))
    _check_questions(settings, from_ini)
    # Gates of the command line are added to those of the ini file. Asking one more must not switch thresholds off.
    ours, elsewhere = gates_by_data(settings, from_ini)
    return replace(settings, gate=(*ours, *asked), gates_elsewhere=elsewhere)


# Whether the whole run was asked for. If so, a test that is not there is missing, not left out on purpose.

_NARROWING = {
    "markexpr": ("-m",),
    "keyword": ("-k",),
    "deselect": ("--deselect",),
    "lf": ("--lf", "--last-failed"),
    "stepwise": ("--sw", "--stepwise"),
    "ignore": ("--ignore",),
    "ignore_glob": ("--ignore-glob",),
}
"""Options of pytest that choose tests, by name, with the flags that a user types."""


def is_whole(config: pytest.Config, settings: Settings) -> bool:
    """Return whether all tests and all queries were asked for: no -m, -k, path, --lf, limit or --rag-run."""
    if any(config.getoption(name, None) and _is_typed(config, flags) for name, flags in _NARROWING.items()):
        return False
    if settings.limit or settings.affected_by or settings.run:
        return False
    return is_everywhere(config)


def is_everywhere(config: pytest.Config) -> bool:
    """Return whether tests are looked for in the whole project: no folder, file or node id was named."""
    source, sources = getattr(config, "args_source", None), getattr(type(config), "ArgsSource", _NoSource)
    if source == getattr(sources, "TESTPATHS", _NoSource.TESTPATHS):
        return True
    here, top = config.invocation_params.dir, config.rootpath
    named = {(here / str(arg)).resolve() for arg in config.args}
    tops = {top.resolve(), config.inipath.parent.resolve() if config.inipath else top.resolve()}
    if not named.isdisjoint(tops):
        return True
    usual = {(top / each).resolve() for each in config.getini("testpaths")}
    return bool(usual) and usual <= named


class _NoSource:
    """Replaces the source of arguments in pytest before 7.2, which does not have it."""

    TESTPATHS = object()


def _is_typed(config: pytest.Config, flags: Sequence[str]) -> bool:
    """Return whether an option was typed for this run. An option of the ini file belongs to every run of the project.

    Under xdist it cannot be told what such an option leaves out, so it counts as typed.
    """
    if config.getoption("tx", None):
        return True
    typed = [*map(str, config.invocation_params.args), *os.environ.get("PYTEST_ADDOPTS", "").split()]
    return any(each.startswith(flag) for each in typed for flag in flags)


def how_to_select(suites: Sequence[str], markers: Collection[str]) -> str:
    """Return what to type to select suites: their markers, or the names of their tests."""
    from rag_harness.core.types import GOLDEN

    if GOLDEN in suites:
        return "run the test that uses rag_retrieval"
    by = "-m" if all(suite in markers and suite.isidentifier() for suite in suites) else "-k"
    return f'{by} "{" or ".join(suites)}"' if len(suites) > 1 else f"{by} {suites[0]}"
