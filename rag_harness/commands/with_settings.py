"""Shared by commands that read a run's settings: options, values from the command line, closing of models."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

_T = TypeVar("_T")


def add_settings(parser: argparse.ArgumentParser, helped: Mapping[str, str], prefixes: Iterable[str] = ("",)) -> None:
    """Declare an option for each setting of ``helped``, once for each prefix: ``rag-`` is pytest's prefix."""
    for name, help_ in helped.items():
        flag = name.replace("_", "-")
        parser.add_argument(*(f"--{prefix}{flag}" for prefix in prefixes), dest=name, help=help_)


def add_query_types(parser: argparse.ArgumentParser) -> None:
    """Declare the option for types of questions, for commands that check questions."""
    help_ = "types of questions of your own, with commas between; default: rag_query_types of the ini file"
    add_settings(parser, {"query_types": help_}, ("", "rag-"))


def query_types(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Return the types of questions beside the known ones: of the command line, else of the suite in this folder."""
    from rag_harness.dataset.query_types import types_named
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

    names = ("query_types",)
    from_ini = {name: value for name, value in ini_values(Path.cwd()).items() if name in names}
    return types_named(load_settings(settings_said(chosen, names), from_ini).query_types)


def settings_said(chosen: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the settings that the command line gives."""
    given = {name: getattr(chosen, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def run_closing(work: Coroutine[Any, Any, _T], parts: RunParts) -> _T:
    """Return what ``work`` returns. Afterwards connections are closed on its loop, and waiting data are written."""
    import asyncio

    async def closed() -> _T:
        try:
            return await work
        finally:
            await parts.endpoints.aclose()

    try:
        return asyncio.run(closed())
    finally:
        parts.flush()
