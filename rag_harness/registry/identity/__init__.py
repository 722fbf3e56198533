"""Identity: the code that a part runs, with all that it imports, as digests; found, and not listed by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import RLock

from rag_harness.registry.identity.libraries import versions
from rag_harness.registry.identity.modules import Modules
from rag_harness.registry.identity.noting import Made, is_noting, note, noting
from rag_harness.registry.identity.reach import Code, Reach
from rag_harness.registry.identity.remembered import Remembered

__all__ = [
    "Code",
    "Made",
    "Modules",
    "Reach",
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
    """Keep what files came to in ``folder``, where the next process finds it; without that each reads them anew."""
    with _lock:
        _code.remembered = Remembered(folder)


def reach(modules: Iterable[str]) -> Reach:
    """Return what modules, by their names, come to with all that they import. They are looked at once a process."""
    with _lock:
        found = _code.reach(modules)
        _code.remembered.keep()
        return found


def code_digest(*modules: str) -> str:
    """Return the digest of modules and of what they import; empty where none of them has a source."""
    return reach(modules).digest
