"""Docstrings and Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

MADE = "<!-- Made from the code by `python -m docs.made`: change it there. -->\n\n"
_SECTION = re.compile(r"^(Attributes|Args|Raises|Returns):$")
_ENTRY = re.compile(r"^ {4}(\*{0,2}\w+(?: \([^)]{0,80}\))?): (.*)$")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; ``|`` in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def code(text: object) -> str:
    """Return a piece of code within a line."""
    return f"`{text}`"


def documented(thing: object) -> str:
    """Return a docstring as Markdown: its sections become lists, its examples code."""
    lines = (inspect.getdoc(thing) or "").replace("``", "`").splitlines()
    made: list[str] = []
    in_section = False
    for line in lines:
        section, entry = _SECTION.match(line), _ENTRY.match(line)
        if section:
            in_section = True
            made += [f"**{section[1]}**", ""]
        elif in_section and entry:
            made.append(f"- `{entry[1]}`: {entry[2]}")
        elif in_section and line.startswith("    "):
            made.append(f"  {line.strip()}" if made[-1] and made[-1][0] in "- " else line.strip())
        else:
            in_section = in_section and not line.strip()
            made.append(line[:-1] if line.endswith("::") else line)
    return "\n".join(made).strip()


def described(cls: type) -> dict[str, str]:
    """Return what a class says of its fields under ``Attributes``, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in (inspect.getdoc(cls) or "").replace("``", "`").partition("Attributes:\n")[2].splitlines():
        if entry := _ENTRY.match(line):
            name = entry[1]
            found[name] = entry[2]
        elif name and line.startswith("     "):
            found[name] += f" {line.strip()}"
        elif line.strip():
            break
    return found


_DOCS = Path(__file__).parents[1]


@cache
def prose() -> dict[str, str]:
    """Return the pages that show how a thing is used, all but reference: a link to each, and its text."""
    files = [
        file for folder in ("tutorials", "how-to", "explanation") for file in sorted((_DOCS / folder).glob("*.md"))
    ]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    return {
        f"[{text.partition(chr(10))[0].removeprefix('# ')}](../{file.parent.name}/{file.name})": text
        for file, text in texts.items()
    }
