"""Whether everything was asked for: what is then not there is missing, and not left out on purpose."""

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
"""Options of pytest that choose tests, by their names, with the flags that they are typed as."""


def is_whole(config: pytest.Config, settings: Settings) -> bool:
    """Return whether a run was asked for all tests and all queries: no -m, -k, path, --lf, limit or --rag-run."""
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
    """pytest before 7.2 does not say where its arguments are from."""

    TESTPATHS = object()


def _is_typed(config: pytest.Config, flags: Sequence[str]) -> bool:
    """Return whether an option was given for this run. What an ini file gives to every run is the project's whole.

    Under xdist nobody can tell what such an option leaves out, so it counts as one that was typed.
    """
    if config.getoption("tx", None):
        return True
    typed = [*map(str, config.invocation_params.args), *os.environ.get("PYTEST_ADDOPTS", "").split()]
    return any(each.startswith(flag) for each in typed for flag in flags)


def how_to_select(suites: Sequence[str], markers: Collection[str]) -> str:
    """Return what to type to have suites in the run: by their markers, or by the names of their tests."""
    if GOLDEN in suites:
        return "run the test that uses rag_retrieval"
    by = "-m" if all(suite in markers and suite.isidentifier() for suite in suites) else "-k"
    return f'{by} "{" or ".join(suites)}"' if len(suites) > 1 else f"{by} {suites[0]}"
