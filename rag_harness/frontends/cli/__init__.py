"""The commands of ``rag-harness``, one module for each group; the parser that they share is here.

A command ``x`` is two functions, ``x_arguments(parser)`` and ``run_x(chosen) -> exit status``, which the table in
``__main__`` names. Nothing else calls them. They hold no logic of their own, and never import pytest. Begin reading
with ``results.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rag_harness.core.errors import meant
from rag_harness.core.settings.table import sentence

FOUND = 1
"""Exit status if something was found."""


_NO_DEFAULT: Sequence[Any] = (None, (), [], "", argparse.SUPPRESS)
"""What argparse has as default of an option that has none."""


class HelpSentences(argparse.HelpFormatter):
    """Each help text as a sentence, with the default of what takes a value."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        has_default = action.nargs != 0 and action.default not in _NO_DEFAULT
        if has_default and "default" not in text:
            text += "; default: %(default)s"
        return sentence(text)


class CommandParser(argparse.ArgumentParser):
    """A parser with sentences of help. Its subcommands refuse unknown options themselves, with their own usage."""

    def __init__(self, *args: Any, **about: Any) -> None:
        super().__init__(*args, **{"formatter_class": HelpSentences, **about})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does, and refuse what is left. Argparse would refuse it with the usage of all commands."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}.{self._meant_option(left)}")
        return found, left

    def _meant_option(self, left: Sequence[str]) -> str:
        known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        hints = (meant(each.partition("=")[0], known) for each in left if each.startswith("--"))
        return next(filter(None, hints), "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = meant(str(value), map(str, action.choices or ()))
            error.message += f".{hint}" if hint else ""
            raise
