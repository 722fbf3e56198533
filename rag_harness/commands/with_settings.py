"""Shared by commands that read a run's settings: options, values from the command line, closing of models."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

_T = TypeVar("_T")


def add_settings(parser: argparse.ArgumentParser, helped: Mapping[str, str], prefixes: Iterable[str] = ("",)) -> None:
    """Declare an option for each setting of ``helped``, once for each prefix: ``rag-`` is pytest's prefix."""
    for name, help_ in helped.items():
        flag = name.replace("_", "-")
        parser.add_argument(*(f"--{prefix}{flag}" for prefix in prefixes), dest=name, help=help_)


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
