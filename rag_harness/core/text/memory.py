"""Memory of slow functions of texts: what one run has found out about a text, the next reads from the cache.

Comparing an answer with its gold takes milliseconds, and loading the rules of seven languages a tenth of a second. What
decides a result beside the texts is the package, Python and libraries: each state of them has a folder of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from rag_harness.core.cache import KeptValues
from rag_harness.core.files import json_digest
from rag_harness.core.package import library_versions, package_digest

P = ParamSpec("P")
R = TypeVar("R")
TEXTS = "texts"
"""The folder in the cache."""
_open: list[KeptValues] = []


def open_memory(cache: Path) -> Callable[[], None]:
    """Use the memory in a cache in this process. Return what writes the new results, and ends that."""
    state = json_digest([package_digest(), sys.version, library_versions()])
    values = KeptValues(cache / TEXTS / state)
    _open[:] = [values]

    def close() -> None:
        values.flush()
        if _open == [values]:
            _open.clear()

    return close


@contextmanager
def without_memory() -> Iterator[None]:
    """Compute in the block what is asked for, as if no run had done so."""
    before, _open[:] = list(_open), []
    try:
        yield
    finally:
        _open[:] = before


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Remember the results of a function that depends on nothing but its texts. They are values of JSON, none null."""
    return remembered_as(_as_it_is, _as_it_is)(function)


def remembered_as(pack: Callable[[R], Any], unpack: Callable[[Any], R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember such results as what ``pack`` makes of them: values of JSON, of which ``unpack`` makes them again."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{getattr(function, '__module__', '')}.{function.__qualname__}"

        @wraps(function)
        def found(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _open:
                return function(*args, **kwargs)
            values, key = _open[0], json_digest([name, args, kwargs])
            known = values.get(key)
            if known is None:
                known = pack(function(*args, **kwargs))
                values.put(key, known)
            return unpack(known)

        return found

    return decorate


def _as_it_is(value: Any) -> Any:
    return value
