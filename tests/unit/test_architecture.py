"""The architecture page and the docstrings of packages name the packages and the modules that there are."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.unit.pages import DOCS, ROOT, read

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
