"""No module shows a text in a way of its own: a new writer that would goes red here, or in ruff (T20: no print)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rag_harness

_PACKAGE = Path(rag_harness.__file__).parent
_TERMINALS = {"terminal", "terminalreporter", "reporter", "tw"}
_WRITES = {"line", "write", "write_line", "write_sep", "section", "sep", "rewrite"}
_LOOKED_AT = {*_WRITES, *"print input writelines writer UsageError fail exit Exception".split()}  # noqa: SIM905
_CALLED = re.compile(rf"\b(?:{'|'.join(sorted(_LOOKED_AT))})\s*\(|\bshould(?:stop|fail)\b")
"""What a file without has no way in it: to parse all files takes seconds."""
_MEANT = {
    "core/escaping.py": "prints",
    "frontends/pytest_plugin/terminal.py": "hands pytest what it prints",
    "frontends/pytest_plugin/injected_tests.py": "is a test: its report is made inert",
    "frontends/pytest_plugin/progress.py": "draws with rich, the words made inert",
}
"""Modules that may, with what they do."""


def test_no_module_goes_another_way() -> None:
    files = {file.relative_to(_PACKAGE).as_posix(): file for file in sorted(_PACKAGE.rglob("*.py"))}
    found = {name: [*_ways(file.read_text(encoding="utf-8"))] for name, file in files.items()}
    around = [f"{name}:{way}" for name, ways in found.items() if name not in _MEANT for way in ways]
    assert around == [], "use core.escaping, or pytest_plugin.terminal for what pytest prints"
    assert set(_MEANT) <= set(files)
    assert len(files) > 300


@pytest.mark.parametrize(
    "source",
    [
        "print(x)",
        "import sys\nsys.stdout.write(x)",
        "import sys\nsys.stderr.write(x)",
        "import sys\nstream = sys.stdout\nsys.stdout.writelines(x)",
        "input(x)",
        "terminalreporter.write_line(x)",
        "terminal.section(x, sep='=')",
        "self._terminal.line(x)",
        "session.shouldstop = f'{x}'",
        "raise pytest.UsageError(str(x))",
        "raise pytest.fail.Exception(x)",
        "pytest.fail(x)",
        "pytest.exit(x)",
        "Console().print(x)",
        "import csv\ncsv.writer(file).writerow(x)",
    ],
)
def test_each_way_around_is_seen(source: str) -> None:
    assert [*_ways(source)]


@pytest.mark.parametrize(
    "source",
    [
        "say(x)",
        "raise pytest.UsageError('Give one.')",
        "verdict.line()",
        "row.line()",
        "file.write(x)",
        "sys.stdout.flush()",
    ],
)
def test_what_prints_nothing_of_others_is_not(source: str) -> None:
    assert [*_ways(source)] == []


def _ways(source: str) -> Iterator[str]:
    if not _CALLED.search(source):
        return
    tree = ast.parse(source)
    escapes = "csv_cell" in source
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (way := _called(node, escapes)):
            yield f"{node.lineno} {way}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in ("shouldstop", "shouldfail"):
                    yield f"{node.lineno} {target.attr} ="


def _called(node: ast.Call, escapes: bool) -> str:
    if getattr(node.func, "attr", getattr(node.func, "id", "")) not in _LOOKED_AT:
        return ""
    name = ast.unparse(node.func)
    first, _, last = name.rpartition(".")
    receiver = first.rpartition(".")[2].strip("_")
    constant = all(isinstance(each, ast.Constant) for each in node.args)
    if name in ("print", "input") or (first in ("sys.stdout", "sys.stderr") and last.startswith("write")):
        return name
    if last in _WRITES and receiver in {each.strip("_") for each in _TERMINALS} and first != "file" and node.args:
        return name
    if name in ("pytest.UsageError", "pytest.fail", "pytest.exit", "pytest.fail.Exception") and not constant:
        return name
    if last == "print" and "onsole" in first:
        return name
    return name if name == "csv.writer" and not escapes else ""
