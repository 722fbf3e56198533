"""Draw mutants of each room from those that cosmic-ray made, leaving out what does not behave otherwise.

    python benchmarks/mutation/draw.py mutants.sqlite sample.json --seed 1
    python benchmarks/mutation/draw.py mutants.sqlite held_out.json --seed 2 --without sample.json

Left out: mutants of annotations, of docstrings, of `from __future__` and of what is imported for types only; names that
stand for types (`Score = float | None`), whose mutants end at the import; mutants that are no Python.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from rooms import ROOMS, ROOT, Room

Mutant = tuple[str, str, int, int]
FIELDS = "module_path, operator_name, occurrence, start_pos_row"


class Behaviour(ast.NodeTransformer):
    """A program without what is not run."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test).endswith("TYPE_CHECKING") else self.generic_visit(node)


def behaviour(code: str) -> str | None:
    """Give what a program does as text; None if it is no program."""
    try:
        return ast.dump(Behaviour().visit(ast.parse(code)))
    except (SyntaxError, ValueError):
        return None


def type_lines(code: str) -> set[int]:
    """Give the lines on which a name is given to a type that is made of several."""
    named = [node for node in ast.parse(code).body if isinstance(node, ast.Assign) and _is_type(node.value)]
    return {line for node in named for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _is_type(value: ast.expr) -> bool:
    """Tell whether an expression is of names, `|` and brackets only, with one of the latter two."""
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.Load)
    return isinstance(value, ast.Subscript | ast.BinOp) and all(isinstance(node, parts) for node in ast.walk(value))


def mutated(mutant: Mutant) -> str | None:
    """Give the program that a mutant is."""
    module, operator, occurrence, _ = mutant
    code: str | None = mutate_code((ROOT / module).read_text(encoding="utf-8"), get_operator(operator)(), occurrence)
    return code


def behaves_otherwise(mutant: Mutant) -> bool:
    code = (ROOT / mutant[0]).read_text(encoding="utf-8")
    other = behaviour(mutated(mutant) or "")
    return mutant[3] not in type_lines(code) and other is not None and other != behaviour(code)


def made(session: Path, room: Room) -> list[Mutant]:
    """Give all mutants of a room, in an order that is the same each time."""
    asked = f"select {FIELDS} from mutation_specs order by 1, 2, 3"
    with sqlite3.connect(session) as database:
        return [tuple(row) for row in database.execute(asked) if row[0].startswith(room.code)]


def drawn(mutants: list[Mutant], rng: random.Random) -> Iterator[Mutant]:
    yield from filter(behaves_otherwise, rng.sample(mutants, len(mutants)))


def sample(session: Path, seed: int, size: Callable[[Room], int], without: list[list[object]]) -> list[object]:
    rows: list[object] = []
    for name, room in ROOMS.items():
        mutants = [mutant for mutant in made(session, room) if list(mutant) not in without]
        some = drawn(mutants, random.Random(f"{seed} {name}"))
        rows += [{"room": name, "mutant": mutant} for mutant, _ in zip(some, range(size(room)), strict=False)]
        print(f"{name}: {len(mutants)} mutants")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", type=Path, help="an earlier sample: draw few, and none of these")
    asked = parser.parse_args()
    earlier = json.loads(asked.without.read_text()) if asked.without else []
    rows = sample(
        asked.session,
        asked.seed,
        lambda room: room.held_out if earlier else room.sampled,
        [row["mutant"] for row in earlier],
    )
    asked.out.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
