"""Reading of all documents into this process by a crew, with their cuts stored; and embedding of texts by a crew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rag_harness.dataset.library import Library, Unread
from rag_harness.models.embedders.cached import Computed, EmbedElsewhere
from rag_harness.protocols import Stores
from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow, Read, UnreadRow
from rag_harness.retrieval.bulk.crew import Crew
from rag_harness.types import Document
from rag_harness.work.reporting import report


def read_by(crew: Crew, windows: Iterable[DocumentWindow], total: int, unit: str, stores: Stores) -> Library:
    """Let the crew read and cut each window; return all documents in order.

    Args:
        crew: does the work.
        windows: the windows, taken one by one.
        total: number of files or rows, called ``unit``.
        stores: get the cuts, so that nothing is cut again.
    """
    documents: list[Document] = []
    unread: list[Unread] = []
    parsed = 0
    report("reading", 0, total, unit)
    for read in crew.ordered("read", ((window,) for window in _noting(windows, unread))):
        assert isinstance(read, Read)
        documents += read.documents
        unread += read.unread
        parsed += read.parsed
        for name, arrays in read.kept.items():
            stores.open(*name).put(arrays)
        report("reading", min(len(documents) + len(unread), total), total, unit)
    report("reading", total, total, unit)
    stores.flush()
    return Library(tuple(documents), tuple(unread), parsed)


def embedding_by(crew: Crew) -> EmbedElsewhere:
    """Return a function that lets a crew embed texts."""

    def computed(parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
        return crew.ordered("embed", ((part, role, with_tokens) for part in parts))

    return computed


def _noting(windows: Iterable[DocumentWindow], unread: list[Unread]) -> Iterator[DocumentWindow]:
    for window in windows:
        unread += [UnreadRow(Path(line), line, said=line) for line in window.failed]
        yield window
