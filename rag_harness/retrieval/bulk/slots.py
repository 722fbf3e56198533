"""Messages for workers that send points to a server: a surveyed window, its place, what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_harness.errors import DataError
from rag_harness.retrieval.bulk.about import About
from rag_harness.retrieval.bulk.bulk_messages import KeptArrays
from rag_harness.types import Chunk

if TYPE_CHECKING:
    from rag_harness.types import Vector


@dataclass(frozen=True)
class Surveyed:
    """A window that was read and cut.

    Attributes:
        asked: number of files or rows.
        said: ``content.said_of`` of its chunks, which decides the name of the collection; and its digest.
        chunks: number of chunks; ``points`` of them have different ids.
        first: text of the first chunk.
        about: the summary of its documents.
        parsed: number of documents that were parsed.
        failed: a line for each file or row that is no document.
        kept: new cuts.
    """

    asked: int
    said: bytes
    digest: bytes
    chunks: int
    points: int
    first: str
    about: About
    parsed: int
    failed: Sequence[str]
    kept: KeptArrays


@dataclass(frozen=True)
class Slot:
    """The place of a window's points.

    Attributes:
        collection: the name of the collection.
        first: position of the window's first chunk among all.
        digest: digest of ``said_of`` of its chunks.
        resumes: whether the server may already have points of it.
    """

    collection: str
    first: int
    digest: bytes
    resumes: bool


@dataclass(frozen=True)
class SentChunks:
    """The result for a window: ``sent`` chunks were missing on the server; ``embedded`` of them had no stored vector.

    ``last`` is the id and the vector of the last chunk sent.
    """

    chunks: int
    sent: int
    embedded: int
    last: tuple[str, Vector] | None


def changed(chunks: Sequence[Chunk] = ()) -> DataError:
    """Return the error for documents that have changed before they were read again."""
    among = f" among {chunks[0].doc_id} to {chunks[-1].doc_id}" if chunks else ""
    return DataError(
        f"Documents{among} were changed while they were ingested: they are read twice, first to see what all of them "
        f"are. Run it again when nobody changes them; what was sent and stays as it is is not sent again."
    )
