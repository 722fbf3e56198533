"""The contents of a collection at one moment. They never change: each change makes new contents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rag_harness.dataset.knowledge_base import pages_digest
from rag_harness.types import Chunk, Document


@dataclass(frozen=True)
class CutDocument:
    """A document as one way of searching has it.

    Attributes:
        chunks: the chunks that it was cut into.
        indexed: what the index holds: its chunks, or windows of them.
    """

    chunks: tuple[Chunk, ...]
    indexed: tuple[Chunk, ...]


@dataclass(frozen=True)
class Held:
    """A document that questions find.

    Attributes:
        row: its number in the database.
        document: the document, under its name.
        cuts: how each way of searching has it. Most experiments have one way.
        points: the number of each of ``indexed`` in the index.
    """

    row: int
    document: Document
    cuts: tuple[CutDocument, ...]
    points: tuple[int, ...]

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the first way."""
        return self.cuts[0].chunks

    @property
    def indexed(self) -> tuple[Chunk, ...]:
        """What the index holds of it, one way after the other."""
        return tuple(chunk for cut in self.cuts for chunk in cut.indexed)

    def found_as(self, way: int) -> list[tuple[int, Chunk]]:
        """Return the points of one way, by number, with their chunks."""
        start = sum(len(cut.indexed) for cut in self.cuts[:way])
        own = self.cuts[way].indexed
        return list(zip(self.points[start : start + len(own)], own, strict=True))

    @property
    def name(self) -> str:
        """The name in its chunks and in citations."""
        return self.document.doc_id

    @property
    def place(self) -> tuple[str, ...]:
        """The document's place in the order of a folder with the same files, whatever order they came in."""
        return tuple(self.name.split("/"))


@dataclass(frozen=True)
class Contents:
    """The documents of a collection, in the order of their names; the data of its experiment.

    Contents with the same documents are equal, whatever happened before. So their answers are equal, too.
    """

    held: tuple[Held, ...] = ()

    def changed(self, add: Iterable[Held] = (), remove: Iterable[int] = ()) -> Contents:
        """Return the contents after a change. New documents replace those of their names; ``remove`` are rows."""
        added, gone = {each.name: each for each in add}, set(remove)
        stay = [each for each in self.held if each.row not in gone and each.name not in added]
        return Contents(tuple(sorted([*stay, *added.values()], key=lambda each: each.place)))

    @cached_property
    def documents(self) -> list[Document]:
        """All documents."""
        return [each.document for each in self.held]

    @cached_property
    def by_name(self) -> dict[str, Held]:
        """Each document by its name."""
        return {each.name: each for each in self.held}

    @cached_property
    def digest(self) -> str:
        """The digest of all documents. A run over a folder with these documents has the same digest."""
        return pages_digest(self.documents)

    def document(self, doc_id: str) -> Document:
        """Return a document by the ``doc_id`` of its chunks; KeyError if it does not exist."""
        return self.by_name[doc_id].document

    @property
    def folder(self) -> str:
        """The folder from which a run would read them; here they come from the collection."""
        return ""
