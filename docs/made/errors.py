"""Errors by their first words: every message that is raised on purpose, as its file has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.made.markdown import MADE
from rag_harness import errors

_PACKAGE = Path(errors.__file__).parent
_LEAST = 25
"""Characters of a message without its variable parts; a shorter one is made of others."""
_KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.RagHarnessError) and kind is not errors.RagHarnessError
}
_INTRODUCTION = """# Errors

Messages as they are raised, by kind and in the order of their first words. `…` stands for what differs: a name, a file,
a number. A message says what was asked, what was found, and what to do. To find yours, search this page for words of it
that are no names.
"""


def page() -> str:
    """Return the page."""
    by_kind: dict[str, set[str]] = {name: set() for name in _KINDS}
    for file in sorted(_PACKAGE.rglob("*.py")):
        for kind, message in _raised(ast.parse(file.read_text(encoding="utf-8"))):
            by_kind[kind].add(message)
    parts = [_INTRODUCTION]
    for kind, messages in by_kind.items():
        if messages:
            parts += [f"\n## {kind}\n", f"{(_KINDS[kind].__doc__ or '').strip().partition(chr(10))[0]}\n"]
            parts += [f"- {message}" for message in sorted(messages, key=_first_word)]
    return MADE + "\n".join(parts) + "\n"


def _first_word(message: str) -> tuple[str, str]:
    return re.sub(r"[^a-z ]", "", message.lower()).strip(), message


def _raised(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _KINDS and node.args:
            said = _said(node.args[0])
            if len(said.replace("…", "")) >= _LEAST:
                yield node.func.id, _as_text(said)


def _said(node: ast.expr) -> str:
    """Return a message with its variable parts left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_said(each) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _said(node.left) + _said(node.right)
    return "…"


def _as_text(said: str) -> str:
    one_line = re.sub(r"\s+", " ", said).strip()
    return re.sub(r"([*_<>\[\]`])", r"\\\1", one_line)
