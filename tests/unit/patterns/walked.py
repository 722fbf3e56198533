"""Every regular expression of the package, and how it is applied, found by walking the code."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rag_harness

ROOT = Path(rag_harness.__file__).parent
SCANS = frozenset(("search", "finditer", "findall", "sub", "subn", "split"))
"""Operations that try every place of a text."""
_OPERATIONS = SCANS | {"match", "fullmatch"}
_USE = re.compile(rf"(?<![\w.])(\w+)\s*\.\s*({'|'.join(sorted(_OPERATIONS))})\b")
_HERE = re.compile(rf"\bre\s*\.\s*(?:{'|'.join(sorted(_OPERATIONS))})\b")
"""How a use of a name looks, and of a pattern where it stands: to parse all files takes ten times as long."""
_NOT_IMPORTED = ("frontends/cli/shipped", "runs/distributed/cluster", "runs/distributed/ingest")
"""Files of a person's own project, and those that need an extra."""


@dataclass
class Applied:
    """One pattern, where it stands, and the operations that it is used with; all where nobody can tell."""

    pattern: re.Pattern[str]
    places: list[str] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)


def applied() -> dict[tuple[str, int], Applied]:
    """Return the patterns of the package by text and flags."""
    found: dict[tuple[str, int], Applied] = {}
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))}
    uses_of = {file: _uses(text) for file, text in texts.items()}
    everywhere: dict[str, set[str]] = {}
    for uses in uses_of.values():
        for name, operations in uses.items():
            everywhere.setdefault(name, set()).update(operations)
    for file, text in texts.items():
        place = file.relative_to(ROOT).as_posix()
        if any(part in place for part in _NOT_IMPORTED):
            continue
        module = importlib.import_module(".".join(("rag_harness", *Path(place).with_suffix("").parts)))
        here = uses_of[file]
        for name, pattern in _named(vars(module)):
            # A private name means what its own module calls so.
            known = here if name.startswith("_") else everywhere
            _add(found, pattern, f"{place}:{name}", known.get(name, set()))
        for line, pattern, operation in _inline(text):
            _add(found, pattern, f"{place}:{line}", {operation} if operation else set())
    return found


def _add(found: dict[tuple[str, int], Applied], pattern: re.Pattern[str], place: str, operations: set[str]) -> None:
    known = found.setdefault((pattern.pattern, pattern.flags), Applied(pattern))
    known.places.append(place)
    known.operations |= operations


def _named(module: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns that a module has a name for, those in its tuples and mappings too."""
    for name, value in module.items():
        several = isinstance(value, tuple | list | dict)
        values = value.values() if isinstance(value, dict) else value if several else [value]
        for each in values:
            parts = each if isinstance(each, tuple | list) else [each]
            for part in parts:
                if isinstance(part, re.Pattern) and isinstance(part.pattern, str):
                    yield f"{name}[]" if several else name, part


def _uses(text: str) -> dict[str, set[str]]:
    """Return the operations that each name is used with in a module, in its comments and texts too."""
    found: dict[str, set[str]] = {}
    for name, operation in _USE.findall(text):
        found.setdefault(name, set()).add(operation)
    return found


def _inline(text: str) -> Iterator[tuple[int, re.Pattern[str], str]]:
    """Yield patterns that stand where they are used: line, pattern, operation; those of ``re.compile`` have none."""
    for node in ast.walk(ast.parse(text)) if _HERE.search(text) else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        first = node.args[0]
        if is_re and node.func.attr in _OPERATIONS and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield node.lineno, re.compile(first.value, _flags(node)), node.func.attr


def _flags(call: ast.Call) -> int:
    values = [*call.args[1:], *(each.value for each in call.keywords)]
    names = [node.attr for value in values for node in ast.walk(value) if isinstance(node, ast.Attribute)]
    return sum(int(getattr(re, name)) for name in set(names) if name.isupper() and hasattr(re, name))
