"""Public names are there, with complete types and docstrings."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module

import pytest

import rag_harness
from rag_harness.core import registry
from tests.unit.pages import ROOT, place, read
from tests.unit.public import EVERY, MODULES
from tests.unit.public import ROOT as PUBLIC_ROOT

# Pages and examples name nothing that is private, and every public name is there.

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


# The types and docstrings of what is public are complete.


def test_a_public_name_has_types_and_docstrings() -> None:
    """Every parameter, result and attribute has a type, every class and function a docstring. Needs no pyright."""
    faults = [f"{name}: {problem}" for name, public in EVERY.items() for problem in _problems(public)]
    assert not faults, "\n".join(faults)
    assert len(EVERY) > 100


def _problems(public: object) -> Iterator[str]:
    if isinstance(public, type):
        return _of_class(public)
    # What is neither is an alias of a type, or a variable.
    return _of_function(public) if callable(public) else iter(())


def _of_class(public: type) -> Iterator[str]:
    for home in public.__mro__:
        if not home.__module__.startswith("rag_harness"):
            continue
        # What a dataclass without a docstring says is its signature.
        if not home.__doc__ or home.__doc__.startswith(f"{home.__name__}("):
            yield f"{home.__name__} has no docstring"
        yield from (f"{home.__name__}.{name} has no type" for name in _guessed(inspect.getsource(home)))
        for name, member in vars(home).items():
            function = getattr(member, "fget", None) or getattr(member, "func", None) or member
            if inspect.isfunction(function) and function.__module__.startswith("rag_harness") and name[0] != "_":
                yield from _of_function(function, inspect.getdoc(getattr(public, name)))


def _of_function(function: object, said: str | None = None) -> Iterator[str]:
    if not inspect.isfunction(function):
        return
    if not (said or function.__doc__):
        yield f"{function.__qualname__} has no docstring"
    signature = inspect.signature(function)
    if signature.return_annotation is inspect.Signature.empty:
        yield f"{function.__qualname__} has no type of its result"
    for name, parameter in signature.parameters.items():
        if parameter.annotation is inspect.Parameter.empty and name not in ("self", "cls"):
            yield f"{function.__qualname__}({name}) has no type"


def _guessed(source: str) -> list[str]:
    """Return the public attributes that a class assigns and gives no type: type checkers have to guess it."""
    body = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(body, ast.ClassDef)
    in_methods = [node for each in body.body if isinstance(each, ast.FunctionDef) for node in ast.walk(each)]
    assigned, typed = _assigned(body.body, ast.Name), _typed(body.body, ast.Name)
    assigned |= _assigned(in_methods, ast.Attribute)
    typed |= _typed(in_methods, ast.Attribute)
    return sorted(name for name in assigned - typed if name[0] != "_")


def _assigned(nodes: Sequence[ast.AST], kind: type[ast.expr]) -> set[str]:
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    each = [part for target in targets for part in getattr(target, "elts", [target])]
    return {_name(target) for target in each if isinstance(target, kind)}


def _typed(nodes: Sequence[ast.AST], kind: type[ast.expr]) -> set[str]:
    return {_name(node.target) for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, kind)}


def _name(target: ast.expr) -> str:
    """Return ``x`` of ``x``, and of ``self.x``; another object's attribute has no name here."""
    if isinstance(target, ast.Attribute):
        return target.attr if ast.unparse(target.value) == "self" else "_"
    return str(getattr(target, "id", "_"))


def test_an_attribute_without_a_type_is_found() -> None:
    source = '''
        class Made(Base):
            """Said."""

            needs = ("answer",)
            typed: int = 1
            _hidden = 2

            def __init__(self, n: int) -> None:
                local.other = n
                self.n, self._m = n, n
                self.late: int = n
        '''
    assert _guessed(source) == ["n", "needs"]


def test_a_function_without_a_type_or_a_docstring_is_found() -> None:
    def made(a, b: int = 1):  # type: ignore[no-untyped-def]
        return a

    found = [problem.rpartition(".")[2] for problem in _of_function(made)]
    assert found == ["made has no docstring", "made has no type of its result", "made(a) has no type"]


@pytest.mark.skipif(shutil.which("pyright") is None, reason="there is no command pyright: npm install -g pyright")
def test_pyright_knows_the_types_of_all_that_is_public() -> None:
    """Not of the whole package: pyright takes each of its modules for a public one."""
    command = ["pyright", "--pythonpath", sys.executable, "--verifytypes", "rag_harness", "--ignoreexternal"]
    done = subprocess.run([*command, "--outputjson"], cwd=PUBLIC_ROOT, capture_output=True, text=True, check=False)
    places = _places()
    found = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    public = [each for each in found if each["isExported"] and _is_below(each["name"], places)]
    assert len(public) > len(EVERY)
    assert [each["name"] for each in public if not each["isTypeKnown"]] == []
    assert [each["name"] for each in public if "No docstring" in str(each["diagnostics"])] == []


def _places() -> set[str]:
    """Return under which names pyright speaks of what is public: as it is exported, and as it stands in its module."""
    homes = {f"rag_harness.{module}.{name}" for name, module in rag_harness._HOME.items()}
    return {*EVERY, *homes} | {
        f"{public.__module__}.{name.rpartition('.')[2]}"
        for name, public in EVERY.items()
        if inspect.isclass(public) or inspect.isfunction(public)
    }


def _is_below(symbol: str, places: set[str]) -> bool:
    """Whether a symbol is one of the places, or a member of one."""
    parts = symbol.split(".")
    return any(".".join(parts[:n]) in places for n in range(1, len(parts) + 1))
