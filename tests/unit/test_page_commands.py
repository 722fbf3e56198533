"""Each command of ``rag-harness`` that a page shows can be typed: its parser takes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tests.unit.pages import DOCS, found, refusal

MADE = {"commands.md", "errors.md"}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4,6}(rag-harness .*?)(?: {2,}.*| +#.*)?$", re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each command in the indented blocks of pages that are written by hand."""
    for page in sorted(DOCS.rglob("*.md")):
        for where, line in found(_COMMAND, page, but=_FENCE) if page.name not in MADE else ():
            parts = (part.strip() for part in line.split("&&"))
            yield from ((where, part) for part in parts if part.startswith("rag-harness "))


def test_a_command_of_a_page_can_be_typed() -> None:
    commands = [*shown()]
    faults = [f"{where}: {command}: {why}" for where, command in commands if (why := refusal(shlex.split(command)[1:]))]
    assert not faults, "\n".join(faults)
    assert len(commands) > 100
