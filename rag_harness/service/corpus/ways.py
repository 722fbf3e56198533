"""The ways in which an experiment searches documents. A collection keeps one index, with points for each way."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from rag_harness.protocols import ChunkWriter
from rag_harness.types import IndexSpec


@dataclass(frozen=True)
class Way:
    """A way to search documents: ``parts.retrieval(spec)``, or ``parts.rewritten(retrieval, writer)``.

    Attributes:
        spec: how documents are cut and embedded.
        writer: makes other texts of chunks, by which they are found; None if they are found by their own.
        of: the number of the way that has these chunks, if there is a writer.
    """

    spec: IndexSpec
    writer: ChunkWriter | None = None
    of: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from other ways, as plain JSON."""
        written = {} if self.writer is None else {"rewritten_by": self.writer.identity, "of": self.of}
        return {"spec": asdict(self.spec), **written}

    @property
    def key(self) -> str:
        """The same as text."""
        return json.dumps(self.identity, sort_keys=True)
