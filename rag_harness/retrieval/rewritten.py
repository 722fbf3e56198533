"""Retrieval that finds chunks by other texts than their own: by summaries of them, say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rag_harness.errors import RagHarnessError
from rag_harness.protocols import ChunkWriter
from rag_harness.retrieval.building import building_alone
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.types import Chunk


class Rewritten(Retrieval):
    """The chunks of ``of``, with the texts that ``writer`` makes of them.

    Args:
        of: has the chunks, and embeds and indexes as this one does.
        writer: makes the texts, once.
    """

    def __init__(self, of: Retrieval, writer: ChunkWriter) -> None:
        super().__init__(of.spec, lambda: (), of.settings, of.stores, of.embedder)
        self._of, self._writer = of, writer
        self._failed: RagHarnessError | None = None

    def prepare(self, queries: Sequence[str]) -> None:
        """Get the texts written, and prepare for ``queries``. Other processes then find the recordings."""
        with building_alone(self.settings):
            _ = self.chunks
        super().prepare(queries)

    @cached_property
    def cut(self) -> list[Chunk]:
        """The rewritten chunks, in the order of the chunks. Near-duplicates are those of ``of``."""
        if self._failed is not None:  # the first trial has asked for all of them; another would pay for them again
            raise self._failed
        try:
            return self._writer.rewritten(self._of.chunks)
        except RagHarnessError as error:
            self._failed = error
            raise

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The same."""
        return self.cut
