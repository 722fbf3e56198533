"""Writing of windows as a folder of Parquet files with chunks and vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow, WindowPart
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.retrieval.bulk.parts_folder import PartsFolder
from rag_harness.work.reporting import report


@dataclass
class Written:
    """The result of writing.

    Attributes:
        asked: number of files or rows.
        failed: a line for each file or row that is no document.
        parts: number of new parts; ``kept`` existed before.
        embedded: number of chunks whose vectors were computed now.
        removed: number of removed parts, of deleted documents.
    """

    asked: int = 0
    failed: list[str] = field(default_factory=list)
    parts: int = 0
    kept: int = 0
    chunks: int = 0
    embedded: int = 0
    removed: int = 0

    def lines(self) -> list[str]:
        """Return the result as lines for a person."""
        return [
            f"documents {self.asked:,}",
            f"failed    {len(self.failed):,}",
            *(f"  {line}" for line in self.failed),
            f"chunks    {self.chunks:,} ({self.embedded:,} embedded now)",
            f"parts     {self.parts + self.kept:,} ({self.kept:,} were there)",
            *([f"removed   {self.removed:,} parts of documents that are no more"] if self.removed else ()),
        ]


def write_parts(
    windows: Iterable[DocumentWindow],
    total: int,
    unit: str,
    crew: Crew,
    folder: PartsFolder,
    about: Mapping[str, Any],
) -> Written:
    """Let the crew cut and embed each window, and write the parts in order.

    Args:
        windows: the windows, taken one by one.
        total: number of files or rows, called ``unit``.
        crew: does the work.
        folder: gets the parts.
        about: what made the parts; it is written at the end.
    """
    written = Written()
    folder.begin()
    report("ingesting", 0, total, unit)
    for part in crew.ordered("part", ((window,) for window in windows)):
        _count(written, part, folder.take(part))
        report("ingesting", min(written.asked, total), total, unit)
    report("ingesting", total, total, unit)
    summary = {"documents": written.asked - len(written.failed), "chunks": written.chunks, "made_by": dict(about)}
    written.removed = folder.finish(summary | {"failed": written.failed})
    return written


def _count(written: Written, part: WindowPart, chunks: int) -> None:
    written.asked += part.asked
    written.failed += part.failed
    written.chunks += chunks
    written.embedded += part.embedded
    written.kept += part.held
    written.parts += bool(chunks) and not part.held
