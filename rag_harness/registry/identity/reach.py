"""The code of a part: its modules and all that they import."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from rag_harness.registry.identity.modules import PACKAGE, Modules, is_installed
from rag_harness.registry.identity.python_source import Import, PythonSource
from rag_harness.registry.identity.remembered import Remembered
from rag_harness.registry.identity.undeciding import HANDS_OUT, LIBRARIES_THAT_DECIDE_NOTHING, decides

_MOST_STEPS = 8
"""Most re-exports that are followed for one name."""


@dataclass(frozen=True)
class CodeReach:
    """The code that some modules reach by their imports.

    Attributes:
        digests: the digest of each module's source, by module.
        libraries: imported packages whose versions count, by import name.
        unknown: requested modules without a source.
    """

    digests: dict[str, str]
    libraries: frozenset[str]
    unknown: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """One digest of all modules; empty without any."""
        if not self.digests:
            return ""
        # The full name of a user's test module depends on the folder in which pytest was started.
        lines = sorted(f"{name.rpartition('.')[2]} {digest}" for name, digest in self.digests.items())
        return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


class Code:
    """The code of this package and of the project under test.

    Args:
        modules: finds files.
        remembered: the cache of parsed files.
    """

    def __init__(self, modules: Modules, remembered: Remembered) -> None:
        self.remembered: Remembered = remembered
        self._modules = modules
        self._sources: dict[str, PythonSource | None] = {}
        self._edges: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {}
        self._reached: dict[tuple[str, ...], CodeReach] = {}

    def reach(self, roots: Iterable[str]) -> CodeReach:
        """Return the code of the modules ``roots`` and of all that they import.

        Of this package, it contains the modules that decide an answer; of the project under test, all modules; of
        installed packages, only modules in the package of a root. Other installed packages count by their versions.
        """
        asked = tuple(sorted({root for root in roots if root}))
        if asked not in self._reached:
            self._reached[asked] = self._reach(asked)
        return self._reached[asked]

    def _reach(self, asked: tuple[str, ...]) -> CodeReach:
        digests: dict[str, str] = {}
        libraries: set[str] = set()
        waiting = [(root, root.partition(".")[0]) for root in asked]
        seen = set(waiting)
        while waiting:
            module, home = waiting.pop()
            source = self._source(module) if module.partition(".")[0] != PACKAGE or decides(module) else None
            if source is None:
                continue
            digests[module] = source.digest
            if module in HANDS_OUT:
                continue
            imported, foreign = self._imported(module, source, home)
            libraries |= foreign
            new = {(each, home) for each in imported} - seen
            seen |= new
            waiting += new
        unknown = tuple(root for root in asked if self._modules.file_of(root) is None)
        return CodeReach(digests, frozenset(libraries - LIBRARIES_THAT_DECIDE_NOTHING.keys()), unknown)

    def _source(self, module: str) -> PythonSource | None:
        if module not in self._sources:
            file = self._modules.file_of(module)
            self._sources[module] = None if file is None else self.remembered.source(file)
        return self._sources[module]

    def _imported(self, module: str, source: PythonSource, home: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the imported modules to follow from ``module``, and the packages whose versions count."""
        key = module, home
        if key not in self._edges:
            followed, libraries = set[str](), set[str]()
            for name in self._targets(module, source):
                top, file = name.partition(".")[0], self._modules.file_of(name)
                if top in sys.stdlib_module_names:
                    continue
                if top == PACKAGE or (file is not None and (top == home or not is_installed(file))):
                    followed.add(name)
                else:
                    libraries.add(top)
            self._edges[key] = frozenset(followed), frozenset(libraries)
        return self._edges[key]

    def _targets(self, module: str, source: PythonSource) -> Iterator[str]:
        for each in source.imports:
            base = self._absolute(module, each)
            if not each.names:
                yield base
            for name, _ in each.names:
                yield self._home_of(base, name)

    def _absolute(self, module: str, each: Import) -> str:
        """Return the absolute name of an import. A relative import starts from the package of ``module``."""
        if not each.level:
            return each.module
        above = module.split(".")
        is_package = (self._modules.file_of(module) or "").endswith("__init__.py")
        kept = above[: len(above) - each.level + is_package]
        return ".".join([*kept, *filter(None, [each.module])])

    def _home_of(self, base: str, name: str, step: int = 0) -> str:
        """Return the module that defines ``name`` of ``from base import name``. Re-exports are followed."""
        below = f"{base}.{name}"
        if self._modules.file_of(below) is not None:
            return below
        file = self._modules.file_of(base)
        if file is None or not file.endswith("__init__.py") or (is_installed(file) and not base.startswith(PACKAGE)):
            return base
        source = self._source(base)
        for each in source.imports if source is not None and step < _MOST_STEPS else ():
            for there, here in each.names:
                if here == name:
                    return self._home_of(self._absolute(base, each), there, step + 1)
        return base
