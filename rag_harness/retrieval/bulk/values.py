"""What travels between whoever hands out documents and the workers. All of it can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag_harness.dataset.library import Source, Unread
from rag_harness.errors import PrerequisiteError
from rag_harness.settings import Settings
from rag_harness.types import Document

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Kept = Mapping[tuple[str, str, str], "Mapping[bytes, npt.NDArray[np.generic]]"]
"""Arrays by key, of each store by its kind, model and revision."""


@dataclass(frozen=True)
class Opening:
    """What a worker is told first.

    Args:
        settings: of whoever asks.
        probes: files that it has to see, by path, with their sizes in bytes.
        held: digests of parts that are there already.
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
        """What a person reads of it, on one line."""
        return self.said


@dataclass(frozen=True)
class Window:
    """Some documents, in their order: files to read, or documents that somebody has read.

    ``failed`` are lines about what was to be a document and is none.
    """

    number: int
    sources: Sequence[Source] = ()
    documents: Sequence[Document] = ()
    failed: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.sources) + len(self.documents) + len(self.failed)


@dataclass(frozen=True)
class Part:
    """What came of a window: a Parquet file of its chunks, as bytes.

    ``asked`` files or rows are in the window. ``content`` is empty where there is no chunk in it, and where ``digest``
    was one of those that are held.
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
    """The documents of a window and what was kept while they were cut; ``parsed`` of them were parsed for it."""

    documents: Sequence[Document]
    unread: Sequence[Unread]
    parsed: int
    kept: Kept


@dataclass(frozen=True)
class Ready:
    """A worker that can begin. ``made_by`` says what decides its documents, cuts and vectors."""

    where: str
    made_by: Mapping[str, Any]

    def check_same(self, other: Ready) -> None:
        """Refuse a worker that would make something else.

        Raises:
            PrerequisiteError: names what differs.
        """
        names = self.made_by.keys() | other.made_by.keys()
        differing = sorted(name for name in names if self.made_by.get(name) != other.made_by.get(name))
        if differing:
            raise PrerequisiteError(
                f"Vectors of {other.where} would be others than those of {self.where}: {', '.join(differing)} differ. "
                f"Give every node the same packages and models."
            )
