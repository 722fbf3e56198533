"""Whether everything was asked for: what is then not there is missing, and not left out on purpose."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.settings import Settings


def is_whole(config: pytest.Config, settings: Settings) -> bool:
    """Return whether a run was asked for all tests and all queries: no -m, -k, path, --lf, limit or --rag-run."""
    narrowed = ("markexpr", "keyword", "deselect", "lf", "last_failed", "stepwise", "ignore", "ignore_glob")
    if any(config.getoption(name, None) for name in narrowed) or settings.limit or settings.affected_by:
        return False
    if config.getoption("rag_run", None):
        return False
    here = config.invocation_params.dir
    named = [here / arg.partition("::")[0] for arg in config.invocation_params.args if not str(arg).startswith("-")]
    is_named = getattr(config, "args_source", None) == getattr(type(config), "ArgsSource", _NoSource).ARGS
    return not is_named or any(_is_top(each, config) for each in named)


class _NoSource:
    """pytest before 7.2 does not say where its arguments are from."""

    ARGS = object()


def _is_top(path: Path, config: pytest.Config) -> bool:
    return path.resolve() in (config.rootpath.resolve(), config.invocation_params.dir.resolve())


def how_to_select(suites: Sequence[str], markers: Collection[str]) -> str:
    """Return what to type to have suites in the run: by their markers, or by the names of their tests."""
    if GOLDEN in suites:
        return "run the test that uses rag_retrieval"
    by = "-m" if all(suite in markers and suite.isidentifier() for suite in suites) else "-k"
    return f'{by} "{" or ".join(suites)}"' if len(suites) > 1 else f"{by} {suites[0]}"
