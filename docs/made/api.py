"""Every name that ``rag_harness`` exports: how it is called, and what its docstring says."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import rag_harness
from docs.made.markdown import MADE, documented, prose

_INTRODUCTION = """# Python API

Every name that `import rag_harness` gives. Nothing else in the package is public, but for the errors in
`rag_harness.core.errors` and the baseline reader `rag_harness.models.reader`.
"""


def page() -> str:
    """Return the page."""
    names = [name for name in rag_harness.__all__ if not name.startswith("__")]
    return MADE + _INTRODUCTION + "".join(_name(name) for name in sorted(names, key=str.lower))


def _name(name: str) -> str:
    thing = getattr(rag_harness, name)
    parts = [f"\n## {name}\n", *_call(name, thing), documented(thing) or _said_below(name), *_members(thing)]
    if pages := _pages_with(name):
        parts.append(f"\nIn use: {', '.join(pages)}.")
    return "\n".join(parts) + "\n"


def _said_below(name: str) -> str:
    """Return what stands below a name that has no docstring of its own: a type, a variable."""
    module = import_module(f"rag_harness.{rag_harness._HOME[name]}")
    body = ast.parse(inspect.getsource(module)).body
    for each, below in itertools.pairwise(body):
        names = [ast.unparse(target) for target in getattr(each, "targets", [getattr(each, "target", ast.Name(""))])]
        if name in names and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return inspect.cleandoc(str(below.value.value)).replace("``", "`")
    return ""


def _call(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        value = re.sub(r"<(\w+).*>", r"\1", _plain(thing), flags=re.DOTALL)
        yield f"```python\n{name} = {value}\n```\n"
    elif getattr(thing, "_is_protocol", False) or _has_many_fields(thing):
        yield f"```python\nclass {name}\n```\n"
    else:
        yield f"```python\n{_signature(name, thing)}\n```\n"


def _has_many_fields(thing: Any) -> bool:
    """Whether a class has so many fields that its call is no help: a row, the settings."""
    return hasattr(thing, "model_fields") or _title(thing) == "Settings"


def _title(thing: Any) -> str:
    """Return the name of a class or a function."""
    return str(getattr(thing, "__name__", ""))


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return name
    if inspect.isclass(thing):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    kept = [
        each.replace(default=each.default if _is_short(each.default) else ...) for each in signature.parameters.values()
    ]
    line = name + _plain(signature.replace(parameters=kept))
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {_plain(each)},\n" for each in kept) + ")" + _returned(signature)


def _returned(signature: inspect.Signature) -> str:
    return "" if signature.return_annotation is signature.empty else f" -> {_plain(signature.return_annotation)}"


def _is_short(default: object) -> bool:
    return default is inspect.Parameter.empty or re.fullmatch(r"[\w.'\"(){}\[\], -]{0,30}", repr(default)) is not None


def _plain(thing: object) -> str:
    """Return an annotation as one reads it: without quotes and the names of modules."""
    text = re.sub(r"(?:[a-z_]+\.)+(?=[A-Z])", "", str(thing))
    return re.sub(r"(?<=: |> )'([^']*)'", r"\1", text).replace("Ellipsis", "…")


def _members(thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        return
    lines = []
    for name, member in sorted(vars(thing).items()):
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function) or not inspect.getdoc(function):
            continue
        called = f"{name}{_plain(inspect.signature(function))}" if function is member else name
        first = documented(function).partition("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{called}`: {first}")
    if lines:
        yield "\n**Methods and properties**\n"
        yield from lines


def _pages_with(name: str) -> list[str]:
    """Return links to the pages whose code uses a name."""
    used = re.compile(rf"\b{name}\b")
    return [link for link, blocks in _code_of_pages().items() if used.search(blocks)]


@cache
def _code_of_pages() -> dict[str, str]:
    return {link: "\n".join(re.findall(r"```python.*?```", text, re.DOTALL)) for link, text in prose().items()}
