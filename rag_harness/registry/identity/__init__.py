"""Identity of parts: digests of their code and of all that it imports. Nobody lists the imports by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import RLock

from rag_harness.registry.identity.libraries import versions
from rag_harness.registry.identity.modules import Modules
from rag_harness.registry.identity.noting import NotedParts, is_noting, note, noting
from rag_harness.registry.identity.reach import Code, CodeReach
from rag_harness.registry.identity.remembered import Remembered

__all__ = [
    "Code",
    "CodeReach",
    "Modules",
    "NotedParts",
    "Remembered",
    "code_digest",
    "is_noting",
    "note",
    "noting",
    "reach",
    "remember_in",
    "versions",
]

_code = Code(Modules(Path(__file__).parents[2]), Remembered())
_lock = RLock()


def remember_in(folder: Path) -> None:
    """Keep the cache of parsed files in ``folder`` for later processes. Without it, each process parses them anew."""
    with _lock:
        _code.remembered = Remembered(folder)


def reach(modules: Iterable[str]) -> CodeReach:
    """Return the digests of modules, given by name, and of all that they import. A process reads each file once."""
    with _lock:
        found = _code.reach(modules)
        _code.remembered.keep()
        return found


def code_digest(*modules: str) -> str:
    """Return one digest of modules and of all that they import; empty where none has a source."""
    return reach(modules).digest
