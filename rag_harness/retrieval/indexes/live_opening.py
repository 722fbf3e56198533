"""Opening of an index that changes while it is searched, by the index that was evaluated."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, cast

from rag_harness.errors import SettingsError
from rag_harness.registry import module_of
from rag_harness.retrieval.indexes.live import LivePoints
from rag_harness.settings import Settings

OpenPoints: TypeAlias = Callable[[Settings, Path, str], LivePoints]
"""Returns the index in a folder, or of a server's collection of this name."""


def opening_of(index: str) -> OpenPoints:
    """Return what opens the registered ``index`` so that it can change: ``open_points`` of its module.

    Raises:
        RegistryError: there is no such index.
        SettingsError: it cannot change while it is searched.
    """
    module = module_of("indexes", index)
    found = getattr(import_module(module), "open_points", None)
    if found is None:
        raise SettingsError(
            f"The index {index!r} cannot be served: a service adds and removes documents while it is searched, and "
            f"{module} has no open_points(settings, folder, name). Write one (docs/reference/parts.md), or evaluate "
            f"and serve with --rag-index=qdrant."
        )
    return cast("OpenPoints", found)
