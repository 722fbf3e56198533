"""What travels where workers send points to a server: what a window was cut into, where it belongs, what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_harness.errors import DataError
from rag_harness.retrieval.bulk.about import About
from rag_harness.retrieval.bulk.values import Kept
from rag_harness.types import Chunk

if TYPE_CHECKING:
    from rag_harness.types import Vector


@dataclass(frozen=True)
class Surveyed:
    """A window that was read and cut.

    Attributes:
        asked: files or rows in it.
        said: of its chunks, as ``content.said_of`` has it: what decides the name of the collection; and its digest.
        chunks: how many there are; ``points`` of them have an id of their own.
        first: text of the first chunk.
        about: its documents.
        parsed: documents that were parsed for it.
        failed: a line for each that is none.
        kept: cuts that no store had.
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
    kept: Kept


@dataclass(frozen=True)
class Slot:
    """Where the points of a window belong.

    Attributes:
        collection: its name.
        first: position of the window's first chunk among all.
        digest: of what is said of its chunks.
        resumes: whether points of it may be there.
    """

    collection: str
    first: int
    digest: bytes
    resumes: bool


@dataclass(frozen=True)
class Sent:
    """What came of the chunks of a window: ``sent`` were not there, ``embedded`` of these had no vector stored.

    ``last`` is the id and the vector of the last that was sent.
    """

    chunks: int
    sent: int
    embedded: int
    last: tuple[str, Vector] | None


def changed(chunks: Sequence[Chunk] = ()) -> DataError:
    """Return the error of documents that are read a second time and are others."""
    among = f" among {chunks[0].doc_id} to {chunks[-1].doc_id}" if chunks else ""
    return DataError(
        f"Documents{among} were changed while they were ingested: they are read twice, first to see what all of them "
        f"are. Run it again when nobody changes them; what was sent and stays as it is is not sent again."
    )
