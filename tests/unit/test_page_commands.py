"""Each command of ``rag-harness`` that a page shows can be typed: its parser takes it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rag_harness.__main__ import parser_of

DOCS = Path(__file__).parents[2] / "docs"
MADE = {"commands.md", "errors.md"}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4,6}(rag-harness .*?)(?: {2,}.*| +#.*)?$", re.MULTILINE)


def shown() -> list[tuple[str, str]]:
    """Return each page that is written by hand with each command of its indented blocks."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page.name not in MADE]
    found = [(page.name, _COMMAND.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))) for page in pages]
    return [(name, part.strip()) for name, lines in found for line in lines for part in line.split("&&")]


@pytest.mark.parametrize(("page", "command"), [each for each in shown() if each[1].startswith("rag-harness ")])
def test_a_command_of_a_page_can_be_typed(page: str, command: str) -> None:
    words = shlex.split(command)[1:]
    assert callable(parser_of(words).parse_args(words).run), page
