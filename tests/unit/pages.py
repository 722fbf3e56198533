"""Files of the repository that are read by people, and where on them something stands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

from rag_harness.__main__ import parser_of
from rag_harness.core.errors import RagHarnessError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@cache
def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def place(page: Path, text: str, position: int) -> str:
    """Return ``docs/how-to/ci.md:12`` of a position in the text of a page, or in that text with parts made blank."""
    return f"{page.relative_to(ROOT).as_posix()}:{text.count(chr(10), 0, position) + 1}"


def found(pattern: re.Pattern[str], page: Path, but: re.Pattern[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the place and the text, that of the first group if there is one, of each match on a page.

    Args:
        pattern: what is looked for.
        page: the file.
        but: what of the page does not count; its lines are still counted.
    """
    text = blanked(but, read(page)) if but else read(page)
    for match in pattern.finditer(text):
        yield place(page, text, match.start()), match[match.lastindex or 0]


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text without what matches, which leaves the ends of its lines."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def refusal(words: Sequence[str]) -> str:
    """Return why ``rag-harness`` with these words cannot be typed; nothing, if it can."""
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            chosen = _parser(tuple(words[:2])).parse_args(words)
    except (RagHarnessError, SystemExit) as error:
        return [str(error), *said.getvalue().splitlines()][-1]
    return "" if callable(getattr(chosen, "run", None)) else "nothing is run"


@cache
def _parser(named: tuple[str, ...]) -> argparse.ArgumentParser:
    """Return the parser that has the arguments of a command, by its group and its name."""
    return parser_of([*named])
