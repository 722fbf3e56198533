"""What ``--help`` says of each option, of the plugin and of each command: a sentence, with unit and default."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

import pytest

from rag_harness.__main__ import ALONE, CANNOT_RUN, COMMANDS, main, parser_of
from rag_harness.core.settings import help_sentence, options
from rag_harness.frontends.pytest_plugin.options import GROUPS

MOST_OPTIONS = 85
FIRST_STEPS = 10
BEGIN = re.compile(r"[A-Z0-9{-]|[\w.-]+[._-]\w+")
"""A sentence begins with a capital letter, a figure, a placeholder, or a name in which a dot or a line stands."""
UNITS = re.compile(
    r"(?i)\b(number|seconds?|tokens|characters|chunks|hits|times|answers|trials|queries|questions|calls|USD|MiB|share|"
    r"confidence|processes|GPUs|days|requests|cases|port|score|difference|seed|passages|part)\b"
)
WORDS = [[name] for name in ALONE] + [[group, name] for group, (_, commands) in COMMANDS.items() for name in commands]


def at(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    for word in words:
        (choices,) = (each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = choices[word]
    return parser


def helped() -> Iterator[tuple[str, str, object]]:
    """Yield the name of each option and argument, its help, and its default."""
    for each in options():
        yield f"--rag-{each.name}", help_sentence(each), each.default
    for words in WORDS:
        parser = at(parser_of(words), words)
        for action in (each for each in parser._actions if each.help != argparse.SUPPRESS):
            name = f"{' '.join(words)} {(action.option_strings or [action.dest])[-1]}"
            default = False if action.nargs == 0 else action.default
            yield name, parser._get_formatter()._expand_help(action) if action.help else "", default


def faults(text: str, default: object) -> Iterator[str]:
    if not BEGIN.match(text) or not text.endswith((".", "…")) or len(text.split()) < 3:
        yield "is no sentence"
    has_default = default is not False and default not in (None, (), [], "", argparse.SUPPRESS)
    if has_default and "default" not in text:
        yield f"has no default: {default!r}"
    if isinstance(default, (int, float)) and not isinstance(default, bool) and not UNITS.search(text):
        yield "has no unit"


def test_each_help_is_a_sentence_with_unit_and_default() -> None:
    found = [f"{name} {fault}: {text}" for name, text, default in helped() for fault in faults(text, default)]
    assert not found, "\n".join(found)


def test_each_option_is_in_one_group_and_there_are_few() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(each.name for each in options())
    assert list(GROUPS) == ["first steps", "answers", "gates", "judging", "recording", "scale"]
    assert len(GROUPS["first steps"]) == FIRST_STEPS
    assert len(named) <= MOST_OPTIONS


@pytest.mark.parametrize(
    ("words", "named"), [([], "kb"), *(([group], next(iter(each[1]))) for group, each in COMMANDS.items())]
)
def test_a_group_without_a_command_prints_its_commands(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == CANNOT_RUN
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(rf"^    {named}\b", said.err, re.MULTILINE)
