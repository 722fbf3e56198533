"""What the suite's ini file sets, for commands that run without pytest: what is served is what was evaluated."""

from __future__ import annotations

from configparser import ConfigParser
from configparser import Error as IniError
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.settings.profiles import pyproject_tool
from rag_harness.settings.table import options

_FILES = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}


def ini_values(folder: Path) -> dict[str, Any]:
    """Return the options that the suite in ``folder`` sets, without lists: gates and slices are of a run.

    pytest's order: pytest.ini, then pyproject.toml, then the others; the first that has its section is the one.

    Raises:
        SettingsError: the file cannot be read.
    """
    names = {
        f"rag_{each.name}": each.name for each in options() if not each.metadata.get("secret") and each.default != ()
    }
    found = _found(folder)
    return {names[key]: value for key, value in found.items() if key in names and value not in ("", [])}


def _found(folder: Path) -> dict[str, Any]:
    for name, section in _FILES.items():
        if name == "tox.ini" and (table := _of_pyproject(folder)) is not None:
            return table
        values = _of_ini(folder / name, section)
        if values is not None:
            return values
    return {}


def _of_ini(file: Path, section: str) -> dict[str, Any] | None:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(file, encoding="utf-8-sig")
    except (IniError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file.name} cannot be read: {error}") from error
    return dict(parser[section]) if section in parser else None


def _of_pyproject(folder: Path) -> dict[str, Any] | None:
    table = pyproject_tool(folder).get("pytest", {}).get("ini_options")
    return dict(table) if isinstance(table, dict) else None
