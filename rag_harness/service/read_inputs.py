"""The inputs of a question, which notice whether a pipeline looks at what was said before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_HISTORY = "history"


class ReadInputs(dict[str, Any]):
    """Inputs as a pipeline gets them.

    Attributes:
        has_history: whether anything was said before.
        history_was_read: whether ``history`` was looked up, or all inputs were gone through, as a copy does.
    """

    def __init__(self, inputs: Any = ()) -> None:
        super().__init__(inputs)
        self.has_history = bool(super().get(_HISTORY))
        self.history_was_read = False

    def _notice(self, key: object) -> None:
        self.history_was_read |= key == _HISTORY

    def __getitem__(self, key: str) -> Any:
        self._notice(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._notice(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self.history_was_read = True
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        self._notice(key)
        return super().get(key, default)

    def keys(self) -> Any:
        self.history_was_read = True
        return super().keys()

    def values(self) -> Any:
        self.history_was_read = True
        return super().values()

    def items(self) -> Any:
        self.history_was_read = True
        return super().items()

    def copy(self) -> Any:
        self.history_was_read = True
        return super().copy()
