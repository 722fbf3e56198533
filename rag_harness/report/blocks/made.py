"""What a block depends on beside its lines. A kept block is valid as long as none of that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from rag_harness.measures import Measure
from rag_harness.registry.identity import code_digest


@dataclass(frozen=True)
class BlockInputs:
    """What the values of a block depend on.

    Attributes:
        cases: digest of the file of the cases.
        code: digest of this package.
        measures: version and source of each measure that has a column, by its name.
    """

    cases: str
    code: str
    measures: Mapping[str, str]

    def serves(self, wanted: BlockInputs) -> bool:
        """Whether a block made of this has everything that ``wanted`` names, in the same version."""
        same = (self.cases, self.code) == (wanted.cases, wanted.code)
        return same and wanted.measures.items() <= self.measures.items()


def made(cases: str, measures: Iterable[Measure]) -> BlockInputs:
    """Return what a block made now depends on; ``measures`` are those with a column in it."""
    return BlockInputs(cases, _code(), {measure.name: _identity(measure) for measure in measures})


def _identity(measure: Measure) -> str:
    kind = type(measure)
    return f"{kind.__module__}.{kind.__qualname__} {measure.version} {code_digest(kind.__module__)}"


@cache
def _code() -> str:
    state = sha256()
    root = Path(__file__).parents[2]
    for file in sorted(root.rglob("*.py")):
        state.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return state.hexdigest()
