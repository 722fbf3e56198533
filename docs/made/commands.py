"""Every command of ``rag-harness`` with its ``--help``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest.mock import patch

from docs.made.markdown import MADE
from rag_harness.__main__ import ALONE, COMMANDS, parser_of

_INTRODUCTION = """# Commands

What `rag-harness` does beside a run of pytest. Its exit status, which shells call the exit code:

- 0: done, and nothing was found;
- 1: something was found, such as a line that is not valid;
- 2: the command could not do its work;
- 130: stopped by Ctrl-C.
"""


def page() -> str:
    """Return the page. Help is wrapped as in a terminal of 100 columns."""
    with patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}):
        return MADE + _INTRODUCTION + "".join(_commands())


def _commands() -> Iterator[str]:
    for name, command in ALONE.items():
        yield _one([name], command.help)
    for group, (about, commands) in COMMANDS.items():
        yield f"\n## {group}\n\n{about[:1].upper()}{about[1:]}.\n"
        for name, command in commands.items():
            yield _one([group, name], command.help)


def _one(words: list[str], about: str) -> str:
    level = "##" if len(words) == 1 else "###"
    help_ = _parser_at(parser_of(words), words).format_help().rstrip()
    return f"\n{level} {' '.join(words)}\n\n{about[:1].upper()}{about[1:]}.\n\n```text\n{help_}\n```\n"


def _parser_at(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    for word in words:
        (choices,) = (each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = choices[word]
    return parser
