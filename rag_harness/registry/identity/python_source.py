"""Parser for Python files: their imports, and a digest that comments and layout do not change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_NOTHING: tuple[Any, ...] = (None, [])
_POSITIONLESS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of syntax nodes that do not change what runs, or repeat what their place in the tree shows."""
_OWED = re.compile(rb"\brag_expect\b|\bexpect\s*=")
"""What a file has that may say what answers owe."""
_DYNAMIC = frozenset({"import_module", "__import__"})
_NAME = re.compile(r"\.*[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Import:
    """``from module import names``, or ``import module`` where there are no names.

    Attributes:
        module: the name as written, without leading dots.
        names: each name, and the name that it gets here.
        level: the number of leading dots, as in ``from ..above import x``.
    """

    module: str
    names: tuple[tuple[str, str], ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True)
class PythonSource:
    """The parsed form of a file.

    Attributes:
        digest: of its syntax tree. Docstrings count: programs may read them, for example as prompts.
        imports: all imports, also those inside functions. Imports for type checkers alone are never run. They count
            only in a file with a function ``__getattr__``, which imports such names on first use (PEP 562).
    """

    digest: str
    imports: tuple[Import, ...]


def read_source(content: bytes) -> PythonSource:
    """Return the parsed form of a file. If this Python cannot parse it: a digest of its bytes, and no imports."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PythonSource(blake2b(content.replace(b"\r\n", b"\n"), digest_size=16).hexdigest(), ())
    imports = tuple(_imports(tree))
    if _OWED.search(content):
        _WithoutOwed().visit(tree)
    said = repr(_plain(tree)).encode("utf-8", "surrogatepass")
    return PythonSource(blake2b(said, digest_size=16).hexdigest(), imports)


def _plain(node: Any) -> Any:
    """Return a tree as nested tuples. They are the same under every version of Python that can read the file.

    Empty fields are left out. New versions add fields to nodes; the fields are empty where the file does not use them.
    """
    if isinstance(node, ast.Constant):
        return "Constant", node.value
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 adds an empty text at the end of an f-string.
        return "JoinedStr", [_plain(each) for each in node.values if getattr(each, "value", None) != ""]
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in _POSITIONLESS)
        return type(node).__name__, *((name, _plain(value)) for name, value in fields if value not in _NOTHING)
    return [_plain(each) for each in node] if isinstance(node, list) else node


class _WithoutOwed(ast.NodeTransformer):
    """Takes out what answers owe: ``expect`` of ``Experiment(…)``, and ``pytest.mark.rag_expect(…)`` anywhere.

    It is gold, so no answer depends on it.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST | None:
        if _is_owed(node):
            return None
        if _called(node) == "Experiment":
            node.keywords = [each for each in node.keywords if each.arg != "expect"]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return None if _is_owed(node.value) else self.generic_visit(node)


def _is_owed(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) == "rag_expect"


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _imports(tree: ast.Module) -> Iterator[Import]:
    is_lazy = any(getattr(node, "name", "") == "__getattr__" for node in tree.body)
    used = _used(tree)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name)
                # ``import a`` and ``a.x`` may be what ``from a import x`` is.
                if read_off := used.get(alias.asname or alias.name):
                    yield Import(alias.name, tuple((name, name) for name in read_off))
        elif isinstance(node, ast.ImportFrom):
            names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
            yield Import(node.module or "", names, node.level)
        else:
            if isinstance(node, ast.Call):
                yield from _by_name(node)
            is_hint = not is_lazy and isinstance(node, ast.If) and _is_for_type_checkers(node.test)
            waiting += node.orelse if is_hint else ast.iter_child_nodes(node)  # type: ignore[attr-defined]


def _used(tree: ast.AST) -> dict[str, list[str]]:
    """Return what is read off each name: of ``a.x`` and ``a.y`` the names ``x`` and ``y`` of ``a``."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return {name: sorted(attributes) for name, attributes in found.items()}


def _is_for_type_checkers(test: ast.expr) -> bool:
    return bool(getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING")


def _by_name(call: ast.Call) -> Iterator[Import]:
    """Yield the import of ``import_module("a.b")``, if the name is a literal."""
    called = _called(call)
    named = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if called in _DYNAMIC and isinstance(named, str) and _NAME.fullmatch(named):
        dots = len(named) - len(named.lstrip("."))
        yield Import(named[dots:], (), dots)


def source_as_json(source: PythonSource) -> list[Any]:
    """Return a source as JSON."""
    return [source.digest, [[each.module, [list(name) for name in each.names], each.level] for each in source.imports]]


def source_of_json(said: Any) -> PythonSource:
    """Return the source that ``source_as_json`` has written.

    Raises:
        ValueError, TypeError, KeyError: ``source_as_json`` did not write it.
    """
    digest, imports = said
    read_imports = tuple(Import(str(m), tuple((str(a), str(b)) for a, b in names), int(n)) for m, names, n in imports)
    return PythonSource(str(digest), read_imports)
