"""What an experiment is made of, noted by each part when it is handed out: nobody has to remember to list it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Made:
    """What was handed out.

    Attributes:
        of: what decides, by name, as plain JSON.
        code: the modules of each part, by its name.
    """

    of: dict[str, Any] = field(default_factory=dict)
    code: dict[str, set[str]] = field(default_factory=dict)

    def add(self, part: str, modules: tuple[str, ...], of: dict[str, Any]) -> None:
        """Add a part; of one that is handed out twice, otherwise the second time, both count."""
        if modules:
            self.code.setdefault(part, set()).update(modules)
        for name, value in of.items():
            known = self.of.setdefault(name, value)
            if isinstance(known, _Several):
                known.add(value)
            elif known != value:
                self.of[name] = _Several([known, value])

    def again(self) -> None:
        """Note all of it once more: a part that is kept was handed out again."""
        for part, modules in self.code.items():
            note(part, *modules)
        for name, value in self.of.items():
            for each in value if isinstance(value, _Several) else [value]:
                note("", **{name: each})


class _Several(list[Any]):
    """Values of one name."""

    def add(self, value: Any) -> None:
        if value not in self:
            self.append(value)


_made: ContextVar[Made | None] = ContextVar("made", default=None)


@contextmanager
def noting() -> Iterator[Made]:
    """Note what is handed out in the block; a block within counts for itself alone."""
    made = Made()
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def is_noting() -> bool:
    """Return whether anybody wants to know: some of what decides takes long to say, the digest of all documents say."""
    return _made.get() is not None


def note(part: str, *modules: str, **of: Any) -> None:
    """Say that ``part`` was handed out: the modules of its code, and what else decides what it does."""
    made = _made.get()
    if made is not None:
        made.add(part, modules, of)
