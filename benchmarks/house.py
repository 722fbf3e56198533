"""How large the house is: modules, functions, imports between packages, and what one trial passes.

    python -m benchmarks.house            # the checkout that this file is in
    python -m benchmarks.house FOLDER     # another checkout, to compare it with

The last four lines replay E3 in processes of their own: a trial's files are counted by a profiler of calls, those of
plumbing are the ones in packages that neither answer nor judge.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import tomllib

PACKAGE = "rag_harness"
PLUMBING = {"core", "records", "runs", "frontends"} | {
    "plugin", "engine", "results", "files", "work", "registry", "settings", "shown", "types", "errors", "protocols",
}  # fmt: skip
"""Packages that carry a trial, under their names of now and of before."""
TRACE = "RAG_HOUSE_TRACE"
"""Names the file into which the traced run writes what it passed."""


def main(checkout: Path) -> None:
    """Print the table of a checkout."""
    trees = {module_of(file, checkout): ast.parse(file.read_text("utf-8")) for file in python_files(checkout / PACKAGE)}
    sizes = [len(file.read_text("utf-8").splitlines()) for file in python_files(checkout / PACKAGE)]
    functions = [node.end_lineno - node.lineno + 1 for tree in trees.values() for node in functions_of(tree)]
    edges = imports(trees)
    arrows = {(top(one), top(other)) for one, others in edges.items() for other in others if top(one) != top(other)}
    packages = {top(module) for module in trees} - {PACKAGE, "__main__"}
    importers = Counter(other for others in edges.values() for other in others)
    alone = [name for name in trees if importers[name] == 1 and not is_face(name, checkout)]
    line("modules / packages at the top", len(sizes), len(packages))
    line("lines", sum(sizes))
    line("module: median / p90 / largest", median(sizes), quantile(sizes, 0.9), max(sizes))
    line("function: median / p90 / longest", median(functions), quantile(functions, 0.9), max(functions))
    line("arrows between packages / upward / circles", len(arrows), len(upward(arrows, checkout)), len(circles(edges)))
    line("modules with one importer", len(alone))
    line("forbidden phrases in docstrings", sum(phrases(trees.values(), checkout)))
    line("test files", sum(1 for _ in (checkout / "tests").rglob("test_*.py")))
    passed = traced(checkout)
    line("files of one trial / of plumbing", len(passed["trial"]), len(plumbing(passed["trial"])))
    line("modules that a replay of E3 imports", passed["modules"])


def line(name: str, *figures: float) -> None:
    """Print one line of the table."""
    print(f"{name:<45} {' / '.join(f'{figure:g}' for figure in figures)}", flush=True)


def python_files(folder: Path) -> list[Path]:
    """Return the modules below a folder."""
    return sorted(folder.rglob("*.py"))


def module_of(file: Path, checkout: Path) -> str:
    """Return the dotted name of a file."""
    parts = file.relative_to(checkout).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_face(module: str, checkout: Path) -> bool:
    """Return whether a module is the ``__init__`` of a package."""
    return (checkout.joinpath(*module.split(".")) / "__init__.py").exists()


def top(module: str) -> str:
    """Return the package at the top that a module is in."""
    return (*module.split("."), "")[1] or PACKAGE


def functions_of(tree: ast.AST) -> Iterator[Any]:
    """Yield the functions of a module, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def imports(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that each module imports when it is imported."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in at_import(tree.body):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                other = module if module in trees else node.module
                if other in trees and other != name:
                    found[name].add(str(other))
    return found


def at_import(body: Iterable[ast.stmt]) -> Iterator[ast.ImportFrom]:
    """Yield the imports that run when a module is imported: none of functions or of ``TYPE_CHECKING``."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in ("body", "orelse", "finalbody"):
                yield from at_import(getattr(node, part, []))


def upward(arrows: Iterable[tuple[str, str]], checkout: Path) -> list[tuple[str, str]]:
    """Return the arrows that point up by the layers of the import contract."""
    contracts = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    level = {name.strip(): at for at, layer in enumerate(layers) for name in layer.split("|")}
    known = [(one, other) for one, other in arrows if one in level and other in level]
    return [(one, other) for one, other in known if level[one] > level[other]]


def circles(edges: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that import themselves through others."""
    return [name for name in edges if name in reached(edges, name)]


def reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """Return the modules that a module imports, directly or through others."""
    found: set[str] = set()
    todo = list(edges.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += edges.get(name, ())
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def phrases(trees: Iterable[ast.Module], checkout: Path) -> Iterator[int]:
    """Yield, for each docstring, how many phrases it has that ``docs/style.toml`` forbids."""
    style = tomllib.loads((checkout / "docs" / "style.toml").read_text("utf-8"))["phrases"]
    patterns = [re.compile(each, re.IGNORECASE) for each in style]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield sum(len(each.findall(text)) for each in patterns)


def plumbing(files: Iterable[str]) -> list[str]:
    """Return those files that carry a trial without answering or judging."""
    return [file for file in files if file.split("/")[0].removesuffix(".py") in PLUMBING]


def traced(checkout: Path) -> dict[str, Any]:
    """Replay E3 in a process of its own, and return the files that one trial passes and the number of modules."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "trace.json")
        places = [f"--rag-{name}={folder}/{name}" for name in ("output", "cache-dir", "logs")]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "e3", "--rag-mode=replay", *places]
        environment = {**os.environ, TRACE: str(kept), "PYTHONPATH": f"{checkout}{os.pathsep}{Path(__file__).parent}"}
        started = subprocess.Popen(
            [*command, "-p", "house"], cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = started.communicate(timeout=600)
        if not kept.exists():
            sys.exit(f"The replay of E3 wrote no trace:\n{said.decode()[-2000:]}")
        found: dict[str, Any] = json.loads(kept.read_text("utf-8"))
        return found


# What follows is a plugin of pytest in the traced process.

_PASSED: dict[str, dict[str, None]] = defaultdict(dict)
_NOW: list[str] = []


def _note(frame: Any, event: str, _: object) -> None:
    file = frame.f_code.co_filename
    if event == "call" and _NOW and f"/{PACKAGE}/" in file:
        _PASSED[_NOW[-1]][file.rpartition(f"/{PACKAGE}/")[2]] = None


def pytest_configure() -> None:
    """Begin to note calls, in this thread and in those that start."""
    if os.environ.get(TRACE):
        threading.setprofile(_note)
        sys.setprofile(_note)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what the trial of a test passes."""
    _NOW.append(item.nodeid)
    try:
        return (yield)
    finally:
        _NOW.pop()


def pytest_unconfigure() -> None:
    """Write what the median trial passed, and how many modules were imported."""
    if not (file := os.environ.get(TRACE)):
        return
    sys.setprofile(None)
    trials = sorted(_PASSED.values(), key=len)
    modules = sum(1 for name in sys.modules if name.split(".")[0] == PACKAGE)
    trial = list(trials[len(trials) // 2]) if trials else []
    Path(file).write_text(json.dumps({"trial": trial, "modules": modules}), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
