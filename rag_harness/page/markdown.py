"""Markdown of limited length, and links from it into the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import escaped, markdown_code, markdown_text
from rag_harness.core.types import GOLDEN
from rag_harness.page.run import Run
from rag_harness.tables.wording import joined_names

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
    said, n = markdown_text(flat), most
    while len(said) > most and n > 1:
        said = markdown_text(shortened(flat, n))
        n = min(n - 1, n * most // len(said))
    return said


# Links from a comment into the report, where its address is known.

_SAFE = "/:?[]@!$&'*+,;=%~"
"""Characters of an address that stay as they are. A parenthesis or an angle bracket would end a link of Markdown."""
_ADDRESS = re.compile(r"https?://[^\s/?#][^\s#]*|(?!//)[^\s:?#]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Links:
    """Links to trials.

    Attributes:
        run: the run that they are of.
        report: the address of the page; empty where it is not known, and trials are named only.
    """

    run: Run
    report: str = ""

    def to(self, trial: str, room: Room, in_table: bool = False) -> str:
        """Return the trial's name as code, which can be copied into a command; as a link where that is possible."""
        address = self.run.address(trial)
        name = markdown_code(room.cut_name(address))
        # A pipe ends a table's cell even in code, and is shown there without its backslash.
        name = name.replace("|", "\\|") if in_table else name
        # The report lists the trials of experiments only.
        if not self.report or trial.startswith(f"{GOLDEN}-"):
            return name
        return f"[{name}]({quote(self.report, safe=_SAFE)}#trials?open={quote(address, safe='')})"


def check_address(report: str) -> None:
    """Make sure that this is the address of a page.

    Raises:
        SettingsError: it is not.
    """
    if not _ADDRESS.fullmatch(report):
        raise SettingsError(
            f"--link {report}: that is no address of a page. Write https://… or a path such as report.html, without a "
            "space and without #."
        )
