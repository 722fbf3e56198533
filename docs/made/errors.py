"""Errors by their first words: every message that is raised on purpose, as its file has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rag_harness
from docs.made.markdown import MADE
from docs.made.messages import Messages
from rag_harness.core import errors

_PACKAGE = Path(rag_harness.__file__).parent
_LEAST, _FEWEST = 25, 4
"""Characters, or words, of a message without its variable parts; a shorter one is made of others."""
_KINDS = {
    name: (kind.__doc__ or "").strip().partition("\n")[0]
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.RagHarnessError) and kind is not errors.RagHarnessError
}
_OWN = "TypeError"
"""Python's kind for what a reader's function returns. A message that is a whole sentence is for the reader."""
_KINDS[_OWN] = "A function of yours returned something that cannot be used."
_INTRODUCTION = """# Errors

Messages as they are raised, by kind and in the order of their first words. `…` stands for what differs: a name, a file,
a number. A message says what was asked, what was found, and what to do. To find yours, search this page for words of it
that are no names.
"""


def page() -> str:
    """Return the page."""
    by_kind: dict[str, set[str]] = {name: set() for name in _KINDS}
    trees = {str(file): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(_PACKAGE.rglob("*.py"))}
    made = Messages(trees)
    for name, tree in trees.items():
        for kind, said in _raised(tree, name, made):
            if _says_enough(said) and (kind != _OWN or said.endswith(".")):
                by_kind[kind].add(_as_text(said))
    parts = [_INTRODUCTION]
    for kind, messages in by_kind.items():
        if messages:
            parts += [f"\n## {kind}\n", f"{_KINDS[kind]}\n"]
            parts += [f"- {message}" for message in sorted(messages, key=_first_word)]
    return MADE + "\n".join(parts) + "\n"


def _first_word(message: str) -> tuple[str, str]:
    return re.sub(r"[^a-z ]", "", message.lower()).strip(), message


def _raised(
    tree: ast.AST, module: str, messages: Messages, inside: ast.FunctionDef | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the kind of each error that is raised, with what it says."""
    for node in ast.iter_child_nodes(tree):
        yield from _raised(node, module, messages, node if isinstance(node, ast.FunctionDef) else inside)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _KINDS and tree.args:
        direct = messages.forms(tree.args[0], module, inside, depth=0)
        # Where the literal says enough, its parts stay "…".
        for form in direct if all(map(_is_long, direct)) else messages.forms(tree.args[0], module, inside):
            yield tree.func.id, form
        if inside is not None and _is_list(tree.args[0]):
            for said in messages.listed(inside, module):
                if said.rstrip().endswith((".", "?", ". …", ".…")):
                    yield tree.func.id, said
    elif isinstance(tree, ast.Call):
        yield from ((kind, said) for kind, said in messages.handed(tree, module, inside) if kind in _KINDS)


def _is_long(said: str) -> bool:
    return len(said.replace("…", "")) >= _LEAST


def _says_enough(said: str) -> bool:
    return _is_long(said) or len(re.findall(r"[A-Za-z]{2,}", said)) >= _FEWEST


def _is_list(node: ast.expr) -> bool:
    """Whether a message is made of the problems that were found, one a line."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value="\n"), attr="join")):
            return True
    return False


def _as_text(said: str) -> str:
    one_line = re.sub(r"\s+", " ", said).strip()
    return re.sub(r"([*_<>\[\]`])", r"\\\1", one_line)
