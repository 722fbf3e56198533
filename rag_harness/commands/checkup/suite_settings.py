"""The settings of a suite as they may be shown to others: no key, no password of an address, no name of a user."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from rag_harness.settings.ini_file import ini_values
from rag_harness.settings.loading import load_settings
from rag_harness.settings.table import Settings, masked

_NAMED = ("data", "endpoints", "configurations", "defined")
"""Tables of pyproject.toml and other files. Their names are enough: a header or an own option may hold a key."""
_LEFT_OUT = ("rootdir", "gates_elsewhere", "stands_in", "reliability_numbers", "define")
_PASSWORD = re.compile(r"(?<=://)[^/\s'\"@]{1,400}@")
_PARAMETERS = re.compile(r"(://[^\s'\"?]{1,400})\?[^\s'\"]{1,400}")


def suite_settings(folder: Path) -> Settings:
    """Return the settings of the suite in ``folder``: ini file, variables, ``.env``, profile.

    Raises:
        SettingsError: a value or a file cannot be used.
    """
    return load_settings(ini=ini_values(folder), rootdir=folder)


def setting_lines(settings: Settings) -> list[str]:
    """Return a line for each setting that is not the default, and for each key whether it is set."""
    shown, defaults = masked(settings), {each.name: each.default for each in fields(Settings)}
    is_key = {each.name: each.metadata.get("secret", False) for each in fields(Settings)}
    return [
        f"{name} {value}" if is_key[name] else f"{name} = {_shown(name, value)}"
        for name, value in shown.items()
        if name not in _LEFT_OUT and (is_key[name] or value != defaults[name])
    ]


def without_secrets(line: str) -> str:
    """Return a line without passwords and parameters of addresses; the user's folder is ``~``."""
    home = str(Path.home())
    line = _PARAMETERS.sub(r"\1?…", _PASSWORD.sub("…@", line))
    return line.replace(home, "~") if len(home) > 1 else line


def _shown(name: str, value: Any) -> str:
    return ", ".join(each.name for each in value) if name in _NAMED else repr(value)
