"""What a message says, read from the code that makes it: a literal, a name, a choice, or a function that returns it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEEP = 3
"""How many functions behind the raising one are looked into."""
_MOST = 6
"""How many forms of one message are listed."""


class Messages:
    """The messages of all modules. A function is found by its name in its module, or if no other has that name.

    Args:
        trees: the modules by their names.
    """

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._constants = {name: _assigned(tree.body) for name, tree in trees.items()}
        self._local: dict[_Function, dict[str, list[ast.expr]]] = {}
        self._functions: dict[str, dict[str, _Function]] = {name: {} for name in trees}
        self._anywhere: dict[str, list[tuple[str, _Function]]] = defaultdict(list)
        for module, tree in trees.items():
            for each in ast.walk(tree):
                if isinstance(each, _Function):
                    self._functions[module].setdefault(each.name, each)
                    self._anywhere[each.name].append((module, each))

    def forms(self, node: ast.expr, module: str, inside: _Function | None, depth: int = _DEEP) -> list[str]:
        """Return what an expression in a function of a module may say, with ``…`` for what differs."""

        def of(each: ast.expr | None) -> list[str]:
            return ["…"] if each is None else self.forms(each, module, inside, depth)

        found = ["…"]
        match node:
            case ast.Constant(value=str(text)):
                found = [text]
            case ast.JoinedStr(values=parts):
                found = _joined([of(part) for part in parts])
            case ast.FormattedValue(value=value, conversion=-1):
                found = of(value)
            case ast.BinOp(op=ast.Add()):
                found = _joined([of(node.left), of(node.right)])
            case ast.IfExp():
                found = [*of(node.body), *of(node.orelse)]
            case ast.BoolOp(op=ast.Or()):
                found = [form for each in node.values for form in of(each)]
            case ast.Name(id=name) if depth:
                found = self._of_name(name, module, inside, depth)
            case ast.Call(func=ast.Name(id=name)) if depth:
                found = self._returned(name, module, depth)
            case ast.Call(func=ast.Attribute(ast.Constant(str(between)), "join"), args=[ast.Name(id=name)]):
                found = [between.join(_texts(each)) for each in self._constants[module].get(name, []) if _texts(each)]
        return list(dict.fromkeys(found))[:_MOST] or ["…"]

    def handed(self, call: ast.Call, module: str, inside: _Function | None) -> Iterator[tuple[str, str]]:
        """Yield the kinds and texts of the errors that a function returns, with what this call hands it."""
        found = self._function(call.func.id, module) if isinstance(call.func, ast.Name) else None
        if found is None:
            return
        names = [each.arg for each in found[1].args.args]
        handed = {name: self.forms(each, module, inside) for name, each in zip(names, call.args, strict=False)}
        for each in ast.walk(found[1]):
            match each:
                case ast.Return(value=ast.Call(func=ast.Name(id=kind), args=[said, *_])):
                    for form in self.forms(_Handed(handed).visit(deepcopy(said)), found[0], found[1]):
                        yield kind, form

    def listed(self, inside: _Function, module: str, depth: int = _DEEP) -> Iterator[str]:
        """Yield the texts of a function that collects problems, and of those that it asks for them."""
        nodes = list(ast.walk(inside))
        docstrings = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
        parts = {id(part) for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values}
        for each in nodes:
            if isinstance(each, (ast.JoinedStr, ast.Constant)) and id(each) not in docstrings | parts:
                yield from self.forms(each, module, inside, depth=0)
            found = self._function(_called(each), module) if depth else None
            if found is not None and found[1] is not inside and "str" in _returns(found[1]):
                yield from self.listed(found[1], found[0], depth - 1)

    def _of_name(self, name: str, module: str, inside: _Function | None, depth: int) -> list[str]:
        if inside is not None and inside not in self._local:
            self._local[inside] = _assigned(ast.walk(inside))
        assigned = {} if inside is None else self._local[inside]
        known = assigned[name] if name in assigned else self._constants[module].get(name, [])
        scope = inside if name in assigned else None
        return [form for each in known for form in self.forms(each, module, scope, depth - 1)]

    def _returned(self, name: str, module: str, depth: int) -> list[str]:
        found = self._function(name, module)
        if found is None or _returns(found[1]) != "str":
            return []
        return [
            form
            for each in ast.walk(found[1])
            if isinstance(each, ast.Return) and each.value is not None
            for form in self.forms(each.value, found[0], found[1], depth - 1)
        ]

    def _function(self, name: str, module: str) -> tuple[str, _Function] | None:
        """Return the function of that name: of the module, else the only one of all modules."""
        if name in self._functions[module]:
            return module, self._functions[module][name]
        found = self._anywhere.get(name, [])
        return found[0] if len(found) == 1 else None


class _Handed(ast.NodeTransformer):
    """Puts what a call hands over in the place of the names that a function gives it."""

    def __init__(self, handed: Mapping[str, Sequence[str]]) -> None:
        self._handed = handed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._handed:
            return node
        return ast.BoolOp(ast.Or(), [ast.Constant(form) for form in self._handed[node.id]])


def _texts(node: ast.expr) -> list[str]:
    """Return the texts of a literal list; none, if it is not a list of texts."""
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Dict(keys=elements):
            texts = [each.value for each in elements if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            return texts if len(texts) == len(elements) else []
    return []


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return ["".join(each) for each in list(product(*(part[:2] for part in parts)))[:_MOST]]


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """Return what is assigned to each name."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for each in nodes:
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            found[each.targets[0].id].append(each.value)
    return found


def _returns(function: _Function) -> str:
    return "" if function.returns is None else ast.unparse(function.returns)


def _called(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""
