"""A set of labels that cannot grow without limit."""

from __future__ import annotations

from collections.abc import Iterable

OTHER = "other"


class Bounded:
    """Takes the first labels that come, and replaces the rest with ``other``.

    Args:
        most: how many labels it takes beyond the known ones.
        known: labels that are always there.
    """

    def __init__(self, most: int, known: Iterable[str] = ()) -> None:
        self._known = set(known)
        self._most = len(self._known) + most

    def label(self, text: str) -> str:
        """Return ``text`` if it is one of the labels or may become one, else ``other``."""
        if text in self._known:
            return text
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(text)
        return text
