"""The architecture page, imports of the package, and warnings of our own suite."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from syrupy.utils import warn_incomplete_worker_reports

import rag_harness
from tests.effort import without_garbage_collection
from tests.unit.pages import DOCS, ROOT, read

# The architecture page and the docstrings of packages name the packages and the modules that there are.

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE, PLUGIN = ROOT / "rag_harness", ROOT / "rag_harness" / "frontends" / "pytest_plugin"
PAGES = [ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
FOLDERS = sorted(file.parent for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE)
_MODULE = re.compile(r"`(?:rag_harness/)?((?:\w+/)+\w+\.py)`")
MOST_WORDS = 900
"""What a maintainer reads before the first change."""


def page() -> str:
    return read(DOCS / "dev" / "architecture.md")


def section(title: str) -> str:
    return page().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_packages_are_those_of_the_contract_in_its_order() -> None:
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    packages = [name.strip() for layer in layers for name in layer.split("|") if name.strip() != "__main__"]
    assert re.findall(r"^\| `(\w+)` \|", section("The packages"), re.MULTILINE) == packages
    assert f"{len(packages)} packages" in page()


def test_a_trial_has_twelve_stops_in_modules_that_are_there() -> None:
    stops = re.findall(r"^\| (\d+) [\w ]+ \| `([\w/.]+)` \|", section("A trial in twelve stops"), re.MULTILINE)
    assert [int(number) for number, _ in stops] == list(range(1, 13))
    lost = [module for _, module in stops if not (PACKAGE / module).is_file() and not (PLUGIN / module).is_file()]
    assert not lost


def test_the_page_is_read_in_a_sitting() -> None:
    words = [each for each in page().split() if re.search(r"\w", each)]
    assert len(words) <= MOST_WORDS


def test_modules_that_pages_name_are_there() -> None:
    ours = {file.name for file in PACKAGE.iterdir()}
    named = [(page, module) for page in PAGES for module in _MODULE.findall(read(page))]
    lost = {
        f"{page.name}: {name}" for page, name in named if name.split("/")[0] in ours and not (PACKAGE / name).exists()
    }
    assert not lost, "\n".join(sorted(lost))
    assert len(named) > 100


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE).as_posix())
def test_a_package_says_in_which_of_its_modules_to_begin(folder: Path) -> None:
    said = ast.get_docstring(ast.parse(read(folder / "__init__.py"))) or ""
    begin = " ".join(said.split()).partition("Begin reading with ")[2]
    modules = re.findall(r"``([\w/]+\.py)``", begin)
    assert modules, "a docstring of a package ends with: Begin reading with ``module.py``."
    assert not [module for module in modules if not (folder / module).is_file()]


# Files of the package: none imports itself by way of others, except for types.

_FOLDER = Path(rag_harness.__file__).parent
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Where a statement has others."""


Imports = Sequence[ast.Import | ast.ImportFrom]
"""The imports of a file, wherever they stand."""


def test_no_file_imports_itself_by_way_of_others() -> None:
    circle = _circle(_graph(_FOLDER))
    assert not circle, f"files import each other in a circle: {' -> '.join(circle)}"


def test_a_circle_is_found_also_inside_a_function_and_one_for_types_alone_is_none(tmp_path: Path) -> None:
    package = tmp_path / "house" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from house.package import first\n")
    (package / "first.py").write_text("if TYPE_CHECKING:\n    from house.package.second import Second\n")
    (package / "second.py").write_text("def later():\n    from house.package import first\n")
    assert _circle(_graph(tmp_path / "house")) == []
    (package / "first.py").write_text("from house.package.second import Second\n")
    assert set(_circle(_graph_of(tmp_path / "house"))) == {"house.package.first", "house.package.second"}


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
    assert {"rag_harness.frontends.pytest_plugin.session", "rag_harness.core.types"} <= _graph(_FOLDER).keys()


def _modules(folder: Path) -> dict[Path, Imports]:
    """Return the imports of each file, in the order of their paths."""
    with without_garbage_collection():
        files = sorted(folder.rglob("*.py"))
        return {file: [*_imports_of(ast.parse(file.read_text(encoding="utf-8")))] for file in files}


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


@cache
def _graph(folder: Path) -> dict[str, set[str]]:
    return _graph_of(folder)


def _graph_of(folder: Path) -> dict[str, set[str]]:
    modules = {_name(file, folder): imports for file, imports in _modules(folder).items()}
    return {name: set(_imported(imports, set(modules))) - {name} for name, imports in modules.items()}


def _name(file: Path, folder: Path) -> str:
    path = file.relative_to(folder.parent).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


def _imports_of(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield imports, also those inside of other statements, but not those for types; an expression has none."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for block in _BLOCKS:
        for each in getattr(node, block, ()):
            yield from _imports_of(each)


def _imported(imports: Imports, known: set[str]) -> Iterator[str]:
    for node in imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in known or node.module in known:
                    yield below if below in known else node.module


# Warnings are errors in our own suite, but for those that say nothing about the code.


def test_ctrl_c_under_workers_ends_with_the_summary_and_no_warning_of_syrupy() -> None:
    """The filters of pytest.ini hold in here. syrupy warns while pytest ends, which an error would cut short."""
    warn_incomplete_worker_reports(received=0, expected=2)
