"""A Python file as Python runs it: a digest that comments and layout do not change, and what the file imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_NOTHING: tuple[Any, ...] = (None, [])
_POSITIONLESS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that say nothing of what is run, or say again what the place in the tree says."""
_DYNAMIC = frozenset({"import_module", "__import__"})
_NAME = re.compile(r"\.*[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Import:
    """``from module import names``, or ``import module`` where there are no names.

    Attributes:
        module: as it is written, without the dots in front of it.
        names: each with the name that it gets here.
        level: dots in front of it, as in ``from ..above import x``.
    """

    module: str
    names: tuple[tuple[str, str], ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What a file comes to.

    Attributes:
        digest: of its syntax tree. Docstrings count: programs read them, as prompts say.
        imports: all of them, those inside functions too; not those for type checkers alone, which are never run.
    """

    digest: str
    imports: tuple[Import, ...]


def read(content: bytes) -> Source:
    """Return what a file comes to; of one that is no Python of this version, by its bytes, and it imports nothing."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Source(blake2b(content.replace(b"\r\n", b"\n"), digest_size=16).hexdigest(), ())
    said = repr(_plain(tree)).encode("utf-8", "surrogatepass")
    return Source(blake2b(said, digest_size=16).hexdigest(), tuple(_imports(tree)))


def _plain(node: Any) -> Any:
    """Return a tree as nested tuples that are the same under every version of Python that can read the file.

    What is empty is left out: versions add fields to nodes, and leave them empty where the file does not use them.
    """
    if isinstance(node, ast.Constant):
        return "Constant", node.value
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 ends a format with an empty text.
        return "JoinedStr", [_plain(each) for each in node.values if getattr(each, "value", None) != ""]
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in _POSITIONLESS)
        return type(node).__name__, *((name, _plain(value)) for name, value in fields if value not in _NOTHING)
    return [_plain(each) for each in node] if isinstance(node, list) else node


def _imports(tree: ast.AST) -> Iterator[Import]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
            yield Import(node.module or "", names, node.level)
        else:
            if isinstance(node, ast.Call):
                yield from _by_name(node)
            is_hint = isinstance(node, ast.If) and _is_for_type_checkers(node.test)
            waiting += node.orelse if is_hint else ast.iter_child_nodes(node)  # type: ignore[attr-defined]


def _is_for_type_checkers(test: ast.expr) -> bool:
    return bool(getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING")


def _by_name(call: ast.Call) -> Iterator[Import]:
    """Yield what ``import_module("a.b")`` imports, where the name is written out."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if called in _DYNAMIC and isinstance(named, str) and _NAME.fullmatch(named):
        dots = len(named) - len(named.lstrip("."))
        yield Import(named[dots:], (), dots)


def as_json(source: Source) -> list[Any]:
    """Return a source as JSON can hold it."""
    return [source.digest, [[each.module, [list(name) for name in each.names], each.level] for each in source.imports]]


def of_json(said: Any) -> Source:
    """Return a source of what ``as_json`` has made.

    Raises:
        ValueError, TypeError, KeyError: it was made by nobody of us.
    """
    digest, imports = said
    read_imports = tuple(Import(str(m), tuple((str(a), str(b)) for a, b in names), int(n)) for m, names, n in imports)
    return Source(str(digest), read_imports)
