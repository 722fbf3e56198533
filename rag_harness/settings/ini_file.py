"""Options from the suite's ini file, for commands without pytest, so that they serve what the suite has evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from iniconfig import IniConfig, ParseError

from rag_harness.errors import SettingsError
from rag_harness.settings.profiles import parsed_toml
from rag_harness.settings.removed import refuse_removed
from rag_harness.settings.table import options

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
