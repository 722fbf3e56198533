"""What a block depends on beside its lines. A kept block is valid as long as none of that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from rag_harness.measures import Measure
from rag_harness.registry.own_parts import may_be_kept, stated_fingerprint
from rag_harness.registry.package_digest import package_digest

_PROCESS = uuid4().hex
"""Stands for the code of a user's own measure. It is not known, so no other process has values of it."""


@dataclass(frozen=True)
class BlockInputs:
    """What the values of a block depend on.

    Attributes:
        cases: digest of the file of the cases.
        code: digest of this package.
        measures: version of each measure that has a column, by its name.
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
    return BlockInputs(cases, package_digest(), {measure.name: _identity(measure) for measure in measures})


def _identity(measure: Measure) -> str:
    kind = type(measure)
    stated = stated_fingerprint(measure) if may_be_kept(measure) else _PROCESS
    return f"{kind.__module__}.{kind.__qualname__} {measure.version} {stated}"
