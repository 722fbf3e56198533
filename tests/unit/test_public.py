"""Pages and examples name nothing that is private, and every public name is there."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module

import pytest

import rag_harness
from rag_harness.core import registry
from tests.unit.pages import ROOT, place, read
from tests.unit.public import EVERY, MODULES

PAGES = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "README.md"]
CODE = [*ROOT.glob("examples/**/*.py"), *ROOT.glob("test_experiments/*.py"), *ROOT.glob("test_retrieval_golden/*.py")]
GROUPS = {f"rag_harness.{group}" for group in [*registry._ONE, "pipelines"]}
"""Entry points, some of which are called as modules are."""
_INSIDE = re.compile(r"^```python\n# rag_harness/.*?^```", re.DOTALL | re.MULTILINE)
"""A block that is a file of the package itself: it may import modules."""
_FROM = re.compile(r"\bfrom (rag_harness[\w.]*) import (?:\(([^)]*)\)|(.*))")
_DOTTED = re.compile(r"(?<![\w./-])(rag_harness(?:\.\w+)+(?::\w+)?)(?![\w/])")
"""``import rag_harness.core.errors``, ``rag_harness.load_results``, ``rag_harness.models.reader:app``."""


def _named(text: str) -> set[str]:
    """Return what a page or a file names of the package, each with its module."""
    outside = _INSIDE.sub("", text)
    said = {dotted.replace(":", ".") for dotted in _DOTTED.findall(_FROM.sub("", outside))}
    return {*_imported(outside)} | {dotted for dotted in said - GROUPS if _exists(dotted)}


def _imported(text: str) -> Iterator[str]:
    for module, in_brackets, in_line in _FROM.findall(text):
        names = re.sub(r"#.*", "", in_brackets or in_line).split(",")
        yield from (f"{module}.{name.split()[0]}" for name in names if name.strip())


def _exists(dotted: str) -> bool:
    """Whether there is such a name: spans of a service and tables of pyproject.toml look like one."""
    module, _, name = dotted.rpartition(".")
    try:
        return hasattr(import_module(module), name) or bool(import_module(dotted))
    except ImportError:
        return False


def test_pages_and_examples_name_what_is_public() -> None:
    public = EVERY.keys() | MODULES.keys()
    private = [
        f"{place(file, read(file), read(file).find(name.rpartition('.')[2]))}: {name}"
        for file in [*PAGES, *CODE]
        for name in sorted(_named(read(file)) - public)
    ]
    assert not private, "\n".join(["docs/dev/architecture.md does not list as public:", *private])


def test_the_pages_name_something() -> None:
    found = {name for page in PAGES for name in _named(read(page))}
    assert {"rag_harness.JudgedMeasure", "rag_harness.spec_of", "rag_harness.core.errors.CriticalError"} <= found
    assert {"rag_harness.models.reader", "rag_harness.load_results", "rag_harness.Experiment"} <= found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "```python\nfrom rag_harness.runs.gates import (\n    Gate,  # why\n    judge as j,\n)\n```\n",
            "runs.gates.Gate runs.gates.judge",
        ),
        ("Say:\n\n    import rag_harness.tables\n\n", "tables"),
        (
            "`rag_harness.core.errors.CriticalError` or `rag_harness.core.files`.",
            "core.errors.CriticalError core.files",
        ),
        ("The entry point `rag_harness.loaders`; `rag_harness.no.such.thing`; `rag_harness/core/log.py`", ""),
        ("```python\n# rag_harness/studies/x.py\nfrom rag_harness.runs.gates import judge\n```\n", ""),
    ],
)
def test_what_a_page_names_is_found(text: str, found: str) -> None:
    assert _named(text) == {f"rag_harness.{name}" for name in found.split()}


def test_every_name_is_there_and_shown_and_known_to_type_checkers() -> None:
    homes = {name: f"rag_harness.{module}" for name, module in rag_harness._HOME.items()}
    assert {*rag_harness.__all__} == {*dir(rag_harness)} == {*homes, "__version__"}
    assert _for_type_checkers() == homes
    for name, module in homes.items():
        assert getattr(rag_harness, name) is getattr(import_module(module), name)


def _for_type_checkers() -> dict[str, str | None]:
    block = next(node for node in ast.parse(inspect.getsource(rag_harness)).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: each.module for each in imports for alias in each.names}


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Experimnt'"):
        _ = rag_harness.Experimnt
