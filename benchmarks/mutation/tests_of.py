"""The tests that run a piece of code, fast ones first, from the output of `survey.py`."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import coverage
from rooms import ROOT


class Survey:
    """What a room's tests run, and how long each takes."""

    def __init__(self, folder: Path, room: str) -> None:
        self.room = room
        self._data = coverage.CoverageData(str(folder / f"{room}.cov"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((folder / f"{room}.seconds.json").read_text())

    def tests(self, module: str, line: int) -> list[str]:
        """Give the tests that call the function of a line; of what is run at the import all, the module's first."""
        lines = self._data.contexts_by_lineno(module)
        held = _function(module, line)
        inside = {_test(each) for at, tests in lines.items() for each in tests if at in held}
        whole = {_test(each) for tests in lines.values() for each in tests}
        found = inside & set(self._seconds) or self._seconds
        return sorted(found, key=lambda test: (test not in whole, self._seconds[test], test))


def _test(context: str) -> str:
    """Give the test of a context; a suite that a test started says `(call)` behind it."""
    return context.removesuffix(" (setup)").removesuffix(" (call)").removesuffix(" (teardown)")


def _function(module: str, line: int) -> range:
    """Give the lines of the innermost function around a line; none outside of functions."""
    nodes = ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [range(node.body[0].lineno, (node.end_lineno or 0) + 1) for node in functions if _holds(node, line)]
    return min(around, key=len, default=range(0))


def _holds(node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first <= line <= (node.end_lineno or 0)
