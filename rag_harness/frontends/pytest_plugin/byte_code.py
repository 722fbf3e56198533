"""Importing this package as any library is imported: from the byte code that its installation made.

pytest rewrites the asserts of a plugin's modules. It would read each source again at every start, and compile all of
them at the first, in each worker. The package asserts for its type checker alone, never for a reader of failures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PACKAGE = __name__.partition(".")[0] + "."


class _OwnModules(MetaPathFinder):
    """Finds the modules of this package before pytest's hook does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path, target) if fullname.startswith(_PACKAGE) else None


# A process imports this module once. A test that starts pytest within pytest may import it again.
sys.meta_path[:] = [
    _OwnModules(),
    *(each for each in sys.meta_path if type(each).__qualname__ != _OwnModules.__qualname__),
]
