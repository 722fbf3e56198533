"""Says that experiments are asked for by a variable alone. A variable does not wake the plugin: others may set it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from rag_harness.plugin.options import settings_folder
from rag_harness.settings import env_name, options

if TYPE_CHECKING:
    import pytest

_VALUE = r"""[ \t]*(?:export[ \t]+)?{name}[ \t]*=[ \t]*["']?([^"'#\n]+)"""


def asleep_line(config: pytest.Config) -> str:
    """Return what to add so that the plugin wakes; empty where no experiment is asked for."""
    name = env_name(next(each for each in options() if each.name == "run"))
    run, where = os.environ.get(name, "").strip(), "the environment"
    if not run:
        run, where = _in_file(config, name), ".env"
    if not run:
        return ""
    ini = config.inipath.name if config.inipath else ""
    add = f"rag_run = {run} to {ini}" if ini else f"rag_run = {run} below [pytest] to a pytest.ini"
    return (
        f"rag: {name}={run} ({where}) asks for experiments, but nothing here uses the plugin, so none was asked. "
        f"Add {add}, or run pytest --rag-run={run}"
    )


def _in_file(config: pytest.Config, name: str) -> str:
    # python-dotenv is not imported where the plugin sleeps; what it reads from this line is the same.
    try:
        text = (settings_folder(config) / ".env").read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""
    found = re.findall(rf"^{_VALUE.format(name=name)}", text, re.MULTILINE)
    return found[-1].strip() if found else ""
