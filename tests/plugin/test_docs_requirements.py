"""docs/dev/requirements.md: what its rows name is there, and its head counts them."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from rag_harness.core.settings import options
from tests.effort import without_garbage_collection
from tests.unit.pages import DOCS, ROOT, place, read, refusal

FILE = DOCS / "dev" / "requirements.md"
PAGE = read(FILE)
KINDS = {"works": "work", "on purpose: ": "differ on purpose", "partly: ": "work in part"}
"""How a status begins, and what the head of the page calls it."""
FLAGS = {f"--rag-{each.name.replace('_', '-')}" for each in options()} | {"--rag-kb", "--k", "--collect-only"}


class Row(NamedTuple):
    """One requirement."""

    ident: str
    requirement: str
    where: str
    shown: str
    status: str

    @property
    def kind(self) -> str:
        return next(kind for begins, kind in KINDS.items() if self.status.startswith(begins))


def _systems() -> dict[str, list[Row]]:
    """Return the rows of each system, by its heading."""
    sections = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {title: [*_rows(text)] for title, text in zip(sections[::2], sections[1::2], strict=True)}


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| |"):
            yield Row(*line.removeprefix("| ").removesuffix(" |").split(" | "))


SYSTEMS = _systems()
ROWS = [row for rows in SYSTEMS.values() for row in rows]
NAMED = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row.shown)}
TESTS = sorted(name for name in NAMED if "::" in name)
COMMANDS = sorted(NAMED - {*TESTS})


def _place(part: str) -> str:
    return place(FILE, PAGE, PAGE.index(part))


def _count(rows: list[Row]) -> list[int]:
    return [[row.kind for row in rows].count(kind) for kind in _kinds()]


def _kinds() -> list[str]:
    return [kind for kind in KINDS.values() if kind in {row.kind for row in ROWS}]


def test_every_requirement_has_its_own_number_in_its_order() -> None:
    idents = [row.ident for row in ROWS]
    expected: list[str] = []
    for ident in idents:
        letter = ident[0]
        expected.append(f"{letter}{1 + sum(each.startswith(letter) for each in expected)}")
    assert idents == expected
    assert len({row.requirement for row in ROWS}) == len(ROWS)


def test_a_requirement_is_short_and_says_where_it_is_and_what_shows_it() -> None:
    assert [row.ident for row in ROWS if len(row.requirement.split()) > 25] == []
    assert [row.ident for row in ROWS if "`" not in row.where or "`" not in row.shown] == []
    assert [row.ident for row in ROWS if row.status != "works" and row.kind == "work"] == []


def test_the_head_counts_what_the_tables_list() -> None:
    counts = ", ".join(f"{count} {kind}" for count, kind in zip(_count(ROWS), _kinds(), strict=True))
    assert f"**{len(ROWS)} requirements: {counts}.**" in PAGE
    assert f"| system | requirements | {' | '.join(_kinds())} |" in PAGE
    for title, rows in SYSTEMS.items():
        assert f"| {title} | {len(rows)} | {' | '.join(map(str, _count(rows)))} |" in PAGE


def test_each_place_that_is_named_is_there() -> None:
    named = [(row.ident, each) for row in ROWS for each in re.findall(r"`([^`]+)`", row.where)]
    faults = [f"{_place(f'| {ident} |')}: {ident}: {each}" for ident, each in named if not _there(each)]
    assert not faults, "\n".join(faults)


def _there(name: str) -> bool:
    return (ROOT / "rag_harness" / name).exists() or (ROOT / name).exists()


def test_each_test_that_is_named_is_there() -> None:
    with without_garbage_collection():
        there = {file: _tests_in(file) for file in {test.partition("::")[0] for test in TESTS}}
    faults = [
        f"{_place(f'`{test}`')}: {test}"
        for test in TESTS
        if test.partition("::")[2] not in there[test.partition("::")[0]]
    ]
    assert not faults, "\n".join(faults)
    assert len(TESTS) > len(ROWS)


def _tests_in(file: str) -> set[str]:
    """Return the tests of a file; none of a file that is not there."""
    if not (ROOT / file).exists():
        return set()
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_command_can_be_typed(pytestconfig: pytest.Config) -> None:
    marks = {line.partition(":")[0].partition("(")[0] for line in pytestconfig.getini("markers")}
    faults = [f"{_place(f'`{command}`')}: {command}: {why}" for command in COMMANDS if (why := _fault(command, marks))]
    assert not faults, "\n".join(faults)
    assert len(COMMANDS) > 50


def _fault(command: str, marks: set[str]) -> str:
    """Return why a command cannot be typed; nothing, if it can."""
    program, *words = shlex.split(command)
    match program, words:
        case "rag-harness", _:
            return refusal(words)
        case "python", ["-m", module, *_]:
            named = ROOT / module.replace(".", "/")
            return "" if named.with_suffix(".py").exists() or named.is_dir() else "there is no such module"
        case "python", [file, *rest]:
            if not (ROOT / file).exists():
                return "there is no such file"
            unknown = [word for word in rest if word.startswith("--") and word not in read(ROOT / file)]
            return f"the file does not name {unknown}" if unknown else ""
        case "pytest", _:
            return _wrong_words(words, marks)
    return "a command that nobody knows"


def _wrong_words(words: list[str], marks: set[str]) -> str:
    """Check a command of pytest: its folders or files, its marks and its options."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    for flag in ("-m", "-n"):
        parser.add_argument(flag, default="")
    parser.add_argument("-q", action="store_true")
    chosen, rest = parser.parse_known_args(words)
    wrong = sorted({*re.findall(r"\w+", chosen.m)} - {"or"} - marks)
    wrong += [word for word in rest if word.startswith("-") and word.partition("=")[0] not in FLAGS]
    wrong += [word for word in rest if not word.startswith("-") and not (ROOT / word).exists()]
    return f"no mark, option or file: {', '.join(wrong)}" if wrong else ""
