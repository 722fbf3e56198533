"""Messages between the process that hands out documents and the workers. All can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag_harness.dataset.library import SourceFile, Unread
from rag_harness.errors import PrerequisiteError
from rag_harness.settings import Settings
from rag_harness.types import Document

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

KeptArrays = Mapping[tuple[str, str, str], "Mapping[bytes, npt.NDArray[np.generic]]"]
"""Arrays by key, for each store, which has a kind, model and revision."""


@dataclass(frozen=True)
class IngestOpening:
    """The first message to a worker.

    Args:
        settings: the settings of the run.
        probes: files that it must see, by path, with their sizes in bytes.
        held: digests of existing parts.
        sends: whether it will send points to the Qdrant server of ``settings``.
    """

    settings: Settings
    probes: Mapping[str, int] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    sends: bool = False


@dataclass(frozen=True, slots=True)
class UnreadRow(Unread):
    """A row of a table that is no document."""

    said: str = ""

    @property
    def line(self) -> str:
        """The row and the reason as one line of text."""
        return self.said


@dataclass(frozen=True)
class DocumentWindow:
    """Some documents, in order: files to read, or documents that were already read.

    ``failed`` has a line for each row that is no document.
    """

    number: int
    sources: Sequence[SourceFile] = ()
    documents: Sequence[Document] = ()
    failed: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.sources) + len(self.documents) + len(self.failed)


@dataclass(frozen=True)
class WindowPart:
    """The part of a window: a Parquet file of its chunks, as bytes.

    The window has ``asked`` files or rows. ``content`` is empty if the window has no chunk, or if a part with
    ``digest`` already exists.
    """

    number: int
    asked: int
    digest: str
    content: bytes = b""
    held: bool = False
    chunks: int = 0
    embedded: int = 0
    failed: Sequence[str] = ()


@dataclass(frozen=True)
class Read:
    """The documents of a window, and the arrays stored while cutting them. ``parsed`` of them were parsed now."""

    documents: Sequence[Document]
    unread: Sequence[Unread]
    parsed: int
    kept: KeptArrays


@dataclass(frozen=True)
class ReadyWorker:
    """A worker is ready. ``made_by`` is everything that decides its documents, cuts and vectors."""

    where: str
    made_by: Mapping[str, Any]

    def check_same(self, other: ReadyWorker) -> None:
        """Refuse a worker that would give other results.

        Raises:
            PrerequisiteError: something differs; names it.
        """
        names = self.made_by.keys() | other.made_by.keys()
        differing = sorted(name for name in names if self.made_by.get(name) != other.made_by.get(name))
        if differing:
            raise PrerequisiteError(
                f"Vectors of {other.where} would be others than those of {self.where}: {', '.join(differing)} differ. "
                f"Give every node the same packages and models."
            )
