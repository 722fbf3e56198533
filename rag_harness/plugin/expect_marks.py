"""Reads what ``@pytest.mark.rag_expect({...})`` demands of the answers that a test asks for."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from rag_harness.types import Expectation

MARKER = "rag_expect"
_EXAMPLE = '@pytest.mark.rag_expect({"max_words": 80})'


class Marked(NamedTuple):
    """The expectations of one mark, and its place: ``test_rag.py:12``."""

    place: str
    expected: tuple[Expectation, ...]


class ExpectMarks:
    """Reads each mark once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[pytest.Mark, Marked]] = {}

    def of(self, node: pytest.Item) -> list[Marked]:
        """Return the expectations of each mark of a test, its class and its module.

        Raises:
            SettingsError: a mark states no expectation, or one that cannot be read; names its place.
        """
        return [self._marked(each, mark) for each, mark in node.iter_markers_with_node(MARKER)]

    def _marked(self, node: Any, mark: pytest.Mark) -> Marked:
        if id(mark) not in self._known:
            # The mark is kept too: otherwise another one could get its id.
            self._known[id(mark)] = mark, _read(node, mark)
        return self._known[id(mark)][1]


def is_marked_itself(node: pytest.Item) -> bool:
    """Return whether the mark is the test's own, not that of its class or module."""
    return any(mark.name == MARKER for mark in node.own_markers)


def _read(node: Any, mark: pytest.Mark) -> Marked:
    from rag_harness.dataset.owed import checked

    place = place_of(node)
    return Marked(place, checked(_raw(mark, place), f"{place}: {MARKER}"))


def _raw(mark: pytest.Mark, place: str) -> Any:
    """Return the objects of a mark as plain JSON."""
    from rag_harness.dataset.owed import plain
    from rag_harness.errors import SettingsError

    if mark.kwargs or not mark.args:
        given = f"{next(iter(mark.kwargs))}=…" if mark.kwargs else "none"
        raise SettingsError(f"{place}: {MARKER} takes objects, and has {given}. Write {_EXAMPLE}.")
    if any(isinstance(each, list | tuple) for each in mark.args):
        raise SettingsError(f"{place}: {MARKER} takes objects, and has a list. Write them one by one: {_EXAMPLE}.")
    return plain(mark.args, f"{place}: {MARKER}")


def place_of(node: Any) -> str:
    """Return file and line of a mark of a test, a class or a module; of one that code has added, of the test."""
    file = Path(node.path)
    # With --rag-kb DIR, the folder of pytest's root is another one.
    root = node.config.inipath.parent if node.config.inipath else node.config.invocation_params.dir
    shown = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(node.obj))
    except (AttributeError, OSError, TypeError):
        return shown
    # The lines of a module are counted from 0.
    first = max(first, 1)
    return f"{shown}:{next((n for n, line in enumerate(lines, first) if MARKER in line), first)}"
