"""Options of a user's own parts: ``[tool.rag_harness.options.<name>]`` in pyproject.toml, set with ``--rag-define``.

An experiment, chunker or reranker reads them as ``settings.own["name"]``. Each says what it affects; the fingerprint
contains it accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings.affects import Affects
from rag_harness.settings.profiles import check_table_keys, pyproject_table

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
