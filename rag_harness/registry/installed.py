"""The name under which this package is installed, and other distributions that bring what it brings.

``rag-harness`` on the package index is somebody else's project, with a command of the same name as ours. Every line
that tells a person what to install takes the name from here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

NAME = "pytest-rag-harness"
"""On the package index. The package is ``rag_harness``, the command is ``rag-harness``."""
VERSION = "0.1.0"
COMMAND = "rag-harness"
_STRANGER = re.compile(r"rag[-_.]harness-(?P<version>[^-]+)\.(dist|egg)-info", re.IGNORECASE)
"""The folder that an installer makes for the project that is known to bring both."""


def install(*extras: str) -> str:
    """Return the command that installs this package, with ``extras``."""
    return f"pip install '{NAME}[{','.join(extras)}]'" if extras else f"pip install {NAME}"


def strangers(by_entry_points: bool = True) -> list[str]:
    """Name each other distribution that brings the package or the command, and say what to do: a line each.

    Args:
        by_entry_points: look at what all installed packages declare; else for the one project that is known. That takes
            50 ms where nobody else has asked, twice what a command takes to start.
    """
    found = _known() | (_declared() if by_entry_points else {})
    return [
        f"{name} {version} brings the package rag_harness or the command {COMMAND} too, and is another project than "
        f"{NAME}. Which of the two runs depends on which was installed last. Remove it: pip uninstall {name}; then "
        f"install this one again: pip install --force-reinstall --no-deps {NAME}"
        for name, version in sorted(found.items())
    ]


def _known() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - pathlib's own makes an object of each of a thousand names
        except OSError:  # an archive, or a folder that is not there
            continue
        for match in filter(None, map(_STRANGER.fullmatch, names)):
            found["rag-harness"] = match["version"]
    return found


def _declared() -> dict[str, str]:
    plugins = [each for each in entry_points_by()(group="pytest11") if each.module.partition(".")[0] == "rag_harness"]
    commands = entry_points_by()(group="console_scripts", name=COMMAND)
    brought_by = [each.dist for each in (*plugins, *commands) if each.dist is not None]
    return {dist.name: dist.version for dist in brought_by if dist.name != NAME}


@lru_cache
def entry_points_by() -> Callable[..., Any]:
    """Return what selects among the entry points of all installed packages, by ``group`` and ``name``."""
    from importlib.metadata import entry_points

    # Asked for one group at a time, importlib reads the files of all installed packages each time.
    return entry_points().select
