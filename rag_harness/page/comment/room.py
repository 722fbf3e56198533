"""How much room each part of a comment has, and foreign text that is cut to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rag_harness.report.wording import joined_names
from rag_harness.shown.hidden import escaped
from rag_harness.shown.markdown import plain

_MORE = "…"


@dataclass(frozen=True, slots=True)
class Room:
    """How much a comment may say.

    Attributes:
        rows: the most rows of a table.
        name: the most characters of a name, with what escapes them.
        text: the most characters of a sentence, with what escapes them.
    """

    rows: int
    name: int
    text: int

    @property
    def few(self) -> int:
        """The most items of a list of details."""
        return max(1, min(3, self.rows // 2))

    def said(self, text: str) -> str:
        """Return a sentence; the end of a long one is left out."""
        return _cut(text, self.text, lambda flat, n: f"{flat[:n].rstrip()}{_MORE}")

    def short(self, text: str) -> str:
        """Return a text that shares its line with others, in a third of the room."""
        return _cut(text, self.text // 3, lambda flat, n: f"{flat[:n].rstrip()}{_MORE}")

    def named(self, name: str, times: int = 1) -> str:
        """Return a name. The middle of a long one is left out: variants differ at the end."""
        return _cut(name, times * self.name, _without_middle)

    def cut_name(self, name: str) -> str:
        """Return a name as it is; without its middle where it is long."""
        flat = escaped(" ".join(name.split()))
        return flat if len(flat) <= self.name else _without_middle(flat, self.name - 1)

    def first(self, names: Sequence[str]) -> str:
        """Return names as text; of many the first."""
        shown = [self.named(name) for name in names[: self.rows]]
        more = [f"{len(names) - len(shown):,} more"] if len(names) > len(shown) else []
        return joined_names([*shown, *more])


def table_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; its cells are Markdown."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)


def below(note: str) -> Iterator[str]:
    """Yield a note below a table, which an empty line ends."""
    if note:
        yield from ("", f"<sub>{note}</sub>")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _without_middle(flat: str, n: int) -> str:
    return f"{flat[: n - n // 2]}{_MORE}{flat[len(flat) - n // 2 :]}"


def _cut(text: str, most: int, shortened: Callable[[str, int], str]) -> str:
    """Return text as Markdown of at most so many characters, with what escapes them."""
    flat = " ".join(text.split())
    said, n = plain(flat), most
    while len(said) > most and n > 1:
        said = plain(shortened(flat, n))
        n = min(n - 1, n * most // len(said))
    return said
