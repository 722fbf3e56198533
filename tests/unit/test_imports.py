"""Files of the package: none imports itself by way of others, and a public name stands in one room or two."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import rag_harness
from tests.unit.quick_parsing import no_garbage_looked_for

_FOLDER = Path(rag_harness.__file__).parent
_MOST_ROOMS = 2
"""Whoever reads a name knows what it is about."""
_ALLOWED: Mapping[str, frozenset[str]] = {
    "the part that an entry point or an experiment's file makes: all are asked for by this name": frozenset(
        {"build", "create"}
    ),
}
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Where a statement has others."""


class Module(NamedTuple):
    """What is looked at of a file: the names that it gives, and its imports wherever they stand."""

    names: Sequence[str]
    imports: Sequence[ast.Import | ast.ImportFrom]


def test_no_file_imports_itself_by_way_of_others() -> None:
    circle = _circle(_graph(_FOLDER))
    assert not circle, f"files import each other in a circle: {' -> '.join(circle)}"


def test_a_circle_is_found_also_where_it_is_for_types_or_inside_a_function(tmp_path: Path) -> None:
    room = tmp_path / "house" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("from house.room import first\n")
    (room / "first.py").write_text("if TYPE_CHECKING:\n    from house.room.second import Second\n")
    (room / "second.py").write_text("def later():\n    from house.room import first\n")
    assert set(_circle(_graph(tmp_path / "house"))) == {"house.room.first", "house.room.second"}


@pytest.mark.parametrize(
    "before",
    [
        "if x:\n    pass\nelse:\n    ",
        "try:\n    pass\nexcept E:\n    ",
        "try:\n    pass\nexcept E:\n    pass\nelse:\n    ",
        "try:\n    pass\nfinally:\n    ",
        "for x in y:\n    ",
        "while x:\n    pass\nelse:\n    ",
        "with x:\n    ",
        "class Made:\n    async def made(self):\n        async with x:\n            ",
        "match x:\n    case 1:\n        ",
    ],
)
def test_an_import_is_found_in_every_statement(before: str) -> None:
    (found,) = _imports_of(ast.parse(f"{before}import json"))
    assert isinstance(found, ast.Import)


def test_what_imports_one_way_is_no_circle(tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("")
    (house / "upper.py").write_text("from house import lower\nfrom house.lower import thing\nimport os\n")
    (house / "lower.py").write_text("import sys\n")
    assert _circle(_graph(house)) == []


def test_the_files_of_the_package_are_looked_at() -> None:
    assert {"rag_harness.plugin.session", "rag_harness.types"} <= _graph(_FOLDER).keys()


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


@cache
def _modules(folder: Path) -> dict[Path, Module]:
    """Return what is looked at of each file, in the order of their paths. Fifteen hundred are parsed once for all."""
    with no_garbage_looked_for():
        return {file: _module(ast.parse(file.read_text(encoding="utf-8"))) for file in sorted(folder.rglob("*.py"))}


def _module(tree: ast.Module) -> Module:
    return Module([*_names(tree)], [*_imports_of(tree)])


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


@cache
def _graph(folder: Path) -> dict[str, set[str]]:
    modules = {_name(file, folder): module for file, module in _modules(folder).items()}
    return {name: set(_imported(module, set(modules))) - {name} for name, module in modules.items()}


def _name(file: Path, folder: Path) -> str:
    path = file.relative_to(folder.parent).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


def _imports_of(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield imports, also those inside of other statements; an expression has none."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for block in _BLOCKS:
        for each in getattr(node, block, ()):
            yield from _imports_of(each)


def _imported(module: Module, known: set[str]) -> Iterator[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in known or node.module in known:
                    yield below if below in known else node.module


def _in_many_rooms(folder: Path) -> dict[str, list[str]]:
    rooms = defaultdict[str, set[str]](set)
    for file, module in _modules(folder).items():
        for name in module.names:
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
