"""Modules and their files, found without importing anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "rag_harness"
_INSTALLED = ("site-packages", "dist-packages")


class Modules:
    """Finds modules of this package, of the project under test and of installed packages.

    Args:
        root: folder of this package.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[str, frozenset[str]] = {}
        self._files: dict[str, str | None] = {}

    def file_of(self, module: str) -> str | None:
        """Return the path of a module's source. None for a module that is built in, compiled or missing."""
        if module not in self._files:
            self._files[module] = self._find(module)
        return self._files[module]

    def _find(self, module: str) -> str | None:
        if module.endswith(".py") and os.path.isfile(module):  # noqa: PTH113 - named by its file: a conftest, say
            return module
        top, _, below = module.partition(".")
        if not top or top in sys.stdlib_module_names:
            return None
        if top == PACKAGE:
            return self._below([str(self._root)], below)
        loaded = getattr(sys.modules.get(module), "__file__", None)
        if loaded and loaded.endswith(".py") and os.path.isfile(loaded):  # noqa: PTH113 - a path of strings throughout
            return str(loaded)
        return self._below(_places(top), below) if below else _own_file(top)

    def _below(self, folders: list[str], below: str) -> str | None:
        """Return the file of the dotted module ``below``, in the first of ``folders`` that has it."""
        parts = below.split(".") if below else []
        return next((file for folder in folders for file in self._candidates(folder, parts)), None)

    def _candidates(self, folder: str, parts: list[str]) -> Iterator[str]:
        above = "/".join([folder, *parts[:-1]])
        there = self._listed(above)
        if not parts or parts[-1] in there:
            package = "/".join([folder, *parts])
            if "__init__.py" in self._listed(package):
                yield f"{package}/__init__.py"
        if parts and f"{parts[-1]}.py" in there:
            yield f"{above}/{parts[-1]}.py"

    def _listed(self, folder: str) -> frozenset[str]:
        # Listing a folder of thirty files takes a tenth of the time of thirty looks at files.
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder))  # noqa: PTH208
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]


def is_installed(file: str) -> bool:
    """Return whether a file belongs to an installed package. Of such a package the version counts, and not the text."""
    return not {*_INSTALLED}.isdisjoint(file.replace("\\", "/").split("/"))


@lru_cache
def _spec(top: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the file of a top-level module, and the folders of its submodules."""
    loaded = sys.modules.get(top)
    if loaded is not None:
        return getattr(loaded, "__file__", None), tuple(map(str, getattr(loaded, "__path__", ())))
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        found = None
    if found is None:
        return None, ()
    return found.origin, tuple(map(str, found.submodule_search_locations or ()))


def _places(top: str) -> list[str]:
    return list(_spec(top)[1])


def _own_file(top: str) -> str | None:
    file = _spec(top)[0]
    return file if file and file.endswith(".py") and os.path.isfile(file) else None  # noqa: PTH113
