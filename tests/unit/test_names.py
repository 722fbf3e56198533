"""A public name, or a file's, stands in one room or two: whoever reads it knows what it is about."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import rag_harness

_FOLDER = Path(rag_harness.__file__).parent
_MOST_ROOMS = 2
_ALLOWED: Mapping[str, frozenset[str]] = {
    "the part that an entry point or an experiment's file makes: all are asked for by this name": frozenset(
        {"build", "create"}
    ),
}


def test_a_name_stands_in_two_rooms_at_most() -> None:
    allowed = frozenset[str]().union(*_ALLOWED.values())
    found = _in_many_rooms(_FOLDER)
    assert found.keys() - allowed == set(), "\n".join(
        f"{name} stands in {', '.join(found[name])}: say in each what it is about"
        for name in sorted(found.keys() - allowed)
    )
    assert allowed - found.keys() == set(), "these may be taken off the list"


@pytest.mark.parametrize(
    "line",
    [
        "def asked() -> None: ...",
        "async def asked() -> None: ...",
        "class asked: ...",
        "asked = 1",
        "asked: int = 1",
        "asked, _one = 1, 2",
    ],
)
def test_a_name_in_three_rooms_is_found(tmp_path: Path, line: str) -> None:
    for room in ("gates", "judges", "page"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "file.py").write_text(f"{line}\n")
    assert _in_many_rooms(tmp_path) == {"asked": ["gates", "judges", "page"]}


def test_a_file_name_stands_in_two_rooms_at_most() -> None:
    rooms = defaultdict[str, set[str]](set)
    for file in _FOLDER.rglob("*.py"):
        if file.parent != _FOLDER and not file.name.startswith("__"):
            rooms[file.name].add(file.relative_to(_FOLDER).parts[0])
    assert {name: sorted(found) for name, found in rooms.items() if len(found) > _MOST_ROOMS} == {}


def test_private_names_imports_and_names_inside_of_others_do_not_count(tmp_path: Path) -> None:
    for room in ("gates", "judges", "page"):
        (tmp_path / f"{room}.py").write_text(
            "import json\nfrom typing import Any\n_T = 1\n__all__ = []\n"
            "class _Made:\n    made = 1\ndef _f(): asked = 1\n"
        )
    assert _in_many_rooms(tmp_path) == {}


def _in_many_rooms(folder: Path) -> dict[str, list[str]]:
    rooms = defaultdict[str, set[str]](set)
    for file in sorted(folder.rglob("*.py")):
        for name in _names(ast.parse(file.read_text(encoding="utf-8"))):
            rooms[name].add(file.relative_to(folder).parts[0].removesuffix(".py"))
    return {name: sorted(found) for name, found in rooms.items() if len(found) > _MOST_ROOMS}


def _names(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        else:
            found = []
        yield from (name for name in found if not name.startswith("_"))
