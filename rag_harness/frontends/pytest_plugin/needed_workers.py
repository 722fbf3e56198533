"""How many workers a run needs whose tests wait for models: one process has as many calls in flight as several."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.frontends.pytest_plugin.collection import markers_in
from rag_harness.pipelines.experiments import built_in

if TYPE_CHECKING:
    import pytest

    from rag_harness.core.settings import Settings

IN_FLIGHT = 64
"""Calls that one process has in flight as well as several do: of 200 ms each, the least that a model takes."""
_LIGHT = ("embedded", "mock")
"""Families of rerankers that take milliseconds a question."""
_MOST_FILES = 200
"""Files of tests that are looked at. In a larger suite tests of other kinds are likely."""
_TEST = re.compile(r"^[ \t]*(?:async )?def test\w*\(([^()]{0,500})", re.MULTILINE)
_TRIAL = re.compile(r"\brag_(?:result|retrieval)\b")
_OWN = re.compile(r"\brag_(?:pipeline|traced|experiment)\b|\bunittest\b")


def limit_waiting(config: pytest.Config, settings: Settings) -> str:
    """Leave out workers beyond those that calls in flight need, before they start; return what to say of it.

    Each worker imports, reads and collects what the others do, and gets a part of the calls. That is so where all
    tests are trials of shipped experiments. Tests of a user's own may compute, and get the workers that were asked for.
    """
    specs, needed = config.getoption("tx", None) or [], -(-settings.concurrency // IN_FLIGHT)
    is_plain = {*specs} == {"popen"} and config.getoption("dist") != "each" and settings.engine == "local"
    if len(specs) <= needed or not is_plain or _computes(settings) or not asks_shipped_alone(config):
        return ""
    if needed > 1:
        config.option.tx = specs[:needed]
        return f"rag: -n {len(specs)} starts {needed} here: tests wait for models, and so many processes have all calls"
    config.option.tx, config.option.dist, config.option.numprocesses = [], "no", 0
    return (
        f"rag: -n {len(specs)} starts no worker here: tests wait for models, and one process has as many calls in "
        f"flight"
    )


def _computes(settings: Settings) -> bool:
    """Return whether a model of this machine writes the answers, or reranks what is found with weights of its own."""
    return settings.chat_base_url == EMBEDDED_URL or settings.rerank_model.partition("/")[0] not in _LIGHT


def asks_shipped_alone(config: pytest.Config) -> bool:
    """Return whether all tests are trials of shipped experiments, as far as ``-m`` and the files of tests tell.

    Nothing is imported. A mistake costs time, and nothing else.
    """
    plugins = config.pluginmanager.get_plugins()
    if any(hasattr(each, "rag_pipeline") and not _is_ours(each) for each in plugins):
        return False
    if names := markers_in(config):
        return names <= built_in().keys() and "not" not in config.getoption("markexpr").split()
    if config.getini("python_functions") != ["test"]:
        return False
    files = [*_files(config)]
    return 0 < len(files) <= _MOST_FILES and all(map(_has_trials_alone, files))


def _is_ours(plugin: object) -> bool:
    return getattr(plugin, "__name__", "").startswith("rag_harness.")


def _has_trials_alone(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    tests = _TEST.findall(text)
    return bool(tests) and all(map(_TRIAL.search, tests)) and not _OWN.search(text)


def _files(config: pytest.Config) -> Iterator[Path]:
    """Yield the files of tests, and no more of them than are looked at, and one."""
    left = _MOST_FILES + 1
    for arg in config.args:
        for file in _below(config, Path(config.invocation_params.dir, arg.partition("::")[0])):
            if not left:
                return
            left -= 1
            yield file


def _below(config: pytest.Config, place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    named, left_out = config.getini("python_files"), config.getini("norecursedirs")
    for folder, folders, files in os.walk(place):
        folders[:] = [each for each in folders if not any(fnmatch(each, pattern) for pattern in left_out)]
        yield from (Path(folder, each) for each in files if any(fnmatch(each, pattern) for pattern in named))
