"""Notes of the parts of an experiment. A part is noted when it is handed out, so nobody has to list parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass
class NotedParts:
    """The parts that were handed out.

    Attributes:
        of: values that decide results, by name, as plain JSON.
        code: the modules of each part, by the part's name.
    """

    of: dict[str, Any] = field(default_factory=dict)
    code: dict[str, set[str]] = field(default_factory=dict)

    def add(self, part: str, modules: tuple[str, ...], of: dict[str, Any]) -> None:
        """Add a part. If it is handed out twice with different values, both values count."""
        if modules:
            self.code.setdefault(part, set()).update(modules)
        for name, value in of.items():
            known = self.of.setdefault(name, value)
            if isinstance(known, _Several):
                known.add(value)
            elif known != value:
                self.of[name] = _Several([known, value])

    def again(self) -> None:
        """Note everything again, for a cached part that is handed out again."""
        for part, modules in self.code.items():
            note(part, *modules)
        for name, value in self.of.items():
            for each in value if isinstance(value, _Several) else [value]:
                note("", **{name: each})


class _Several(list[Any]):
    """Several different values of one name."""

    def add(self, value: Any) -> None:
        if value not in self:
            self.append(value)


_made: ContextVar[NotedParts | None] = ContextVar("made", default=None)


@contextmanager
def noting() -> Iterator[NotedParts]:
    """Note the parts that are handed out in the block. An inner block has notes of its own."""
    made = NotedParts()
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def is_noting() -> bool:
    """Return whether parts are noted now. Some values, such as the digest of all documents, take long to compute."""
    return _made.get() is not None


def note(part: str, *modules: str, **of: Any) -> None:
    """Note that ``part`` was handed out: the modules of its code, and the values that decide its results."""
    made = _made.get()
    if made is not None:
        made.add(part, modules, of)
