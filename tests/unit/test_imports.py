"""No file of the package imports itself by way of others, not even for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rag_harness

_FOLDER = Path(rag_harness.__file__).parent


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


def test_what_imports_one_way_is_no_circle(tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("")
    (house / "upper.py").write_text("from house import lower\nfrom house.lower import thing\nimport os\n")
    (house / "lower.py").write_text("import sys\n")
    assert _circle(_graph(house)) == []


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


@cache
def _graph(folder: Path) -> dict[str, set[str]]:
    files = {_name(file, folder): file for file in sorted(folder.rglob("*.py"))}
    return {name: set(_imports(file, set(files))) - {name} for name, file in files.items()}


def _name(file: Path, folder: Path) -> str:
    path = file.relative_to(folder.parent).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


def _imports(file: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in known or node.module in known:
                    yield below if below in known else node.module


@pytest.mark.parametrize("name", ["rag_harness.plugin.session", "rag_harness.types"])
def test_the_files_of_the_package_are_looked_at(name: str) -> None:
    assert name in _graph(_FOLDER)
