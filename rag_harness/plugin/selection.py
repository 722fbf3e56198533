"""Whether the whole run was asked for. If so, a test that is not there is missing, not left out on purpose."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.settings import Settings

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
    """Stands for the source of arguments in pytest before 7.2, which does not say it."""

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
    if GOLDEN in suites:
        return "run the test that uses rag_retrieval"
    by = "-m" if all(suite in markers and suite.isidentifier() for suite in suites) else "-k"
    return f'{by} "{" or ".join(suites)}"' if len(suites) > 1 else f"{by} {suites[0]}"
