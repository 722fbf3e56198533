"""The types and docstrings of what is public are complete."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence

import pytest

import rag_harness
from tests.unit.public import EVERY, ROOT


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
    done = subprocess.run([*command, "--outputjson"], cwd=ROOT, capture_output=True, text=True, check=False)
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
