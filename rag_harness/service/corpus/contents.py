"""What is in a collection at one moment. Never changed: each change makes another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rag_harness.dataset.knowledge_base import digest_of
from rag_harness.types import Chunk, Document


@dataclass(frozen=True)
class Held:
    """A document that questions find.

    Attributes:
        row: its number in the database.
        document: under its name.
        chunks: that it was cut into.
        indexed: what the index holds of it: its chunks, or windows of them.
        points: the number of each of those in the index.
    """

    row: int
    document: Document
    chunks: tuple[Chunk, ...]
    indexed: tuple[Chunk, ...]
    points: tuple[int, ...]

    @property
    def name(self) -> str:
        """What chunks and citations call it."""
        return self.document.doc_id

    @property
    def place(self) -> tuple[str, ...]:
        """Where it stands among others: as a folder of such files is read, whatever order they came in."""
        return tuple(self.name.split("/"))


@dataclass(frozen=True)
class Contents:
    """The documents of a collection, in the order of their names; the data of its experiment.

    Two collections of the same documents are the same, whatever happened before: so answers are.
    """

    held: tuple[Held, ...] = ()

    def changed(self, add: Iterable[Held] = (), remove: Iterable[int] = ()) -> Contents:
        """Return what is in it after a change; who comes under a name replaces who has it. ``remove`` are rows."""
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
        """Digest of all documents, the same that a run over a folder of them has."""
        return digest_of(self.documents)

    def document(self, doc_id: str) -> Document:
        """Return a document by the ``doc_id`` of its chunks; KeyError where there is none."""
        return self.by_name[doc_id].document

    @property
    def folder(self) -> str:
        """Where a run would read them; they are here."""
        return ""
