"""The contents of a collection at one moment: documents, search variants, term weights, and the state that answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from rag_harness.core.protocols import ChunkWriter, Experiment
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Chunk, Document, IndexSpec
from rag_harness.data.documents import pages_digest
from rag_harness.models.call_context import LONGEST_ANSWER
from rag_harness.retrieval.retrievers import Rarity

# The contents of a collection at one moment. They never change: each change makes new contents.


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
class LiveDocument:
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

    held: tuple[LiveDocument, ...] = ()

    def changed(self, add: Iterable[LiveDocument] = (), remove: Iterable[int] = ()) -> Contents:
        """Return the contents after a change. New documents replace those of their names; ``remove`` are rows."""
        added, gone = {each.name: each for each in add}, set(remove)
        stay = [each for each in self.held if each.row not in gone and each.name not in added]
        return Contents(tuple(sorted([*stay, *added.values()], key=lambda each: each.place)))

    @cached_property
    def documents(self) -> list[Document]:
        """All documents."""
        return [each.document for each in self.held]

    @cached_property
    def by_name(self) -> dict[str, LiveDocument]:
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


# One state of a collection. A question keeps the state with which it began until it is answered.

DEFAULT = "default"
"""The collection for requests that name none; it begins with a folder of documents."""


@dataclass(frozen=True)
class Serving:
    """What answers questions about one state of a collection.

    Attributes:
        experiment: the experiment over these documents.
        strict: the variant that answers in mode strict; None if the experiment has none.
        document: returns a document of this state by the ``doc_id`` of its chunks; KeyError if it does not exist.
        generation: counts the states of the collection.
        check: raises QueryTooLongError if a question is too long for the embedder.
        longest_answer: most characters of an answer; a longer one counts as an error of the model.
        refusals: phrases that decline, besides those that are known.
    """

    experiment: Experiment
    strict: Experiment | None
    document: Callable[[str], Document]
    generation: int
    check: Callable[[str], None] = lambda _question: None
    longest_answer: int = LONGEST_ANSWER
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """The details of a document, without its text.

    ``status`` is ``pending``, ``ready`` or ``failed``; ``why`` says why it failed, or which charset was guessed;
    ``dropped`` counts what was left out, by reason; ``coverage`` is the share of the text's characters, blanks aside,
    that lie in chunks.
    """

    doc_id: str
    name: str
    status: Literal["pending", "ready", "failed", "deleting"]
    why: str
    chunks: int
    dropped: dict[str, int]
    coverage: float | None
    bytes: int
    created: str


# The ways in which an experiment searches documents. A collection keeps one index, with points for each way.


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


class LiveTerms:
    """Counts how many chunks of a collection have each word. Used by one thread at a time."""

    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}
        self._having: Counter[str] = Counter()

    def over(self, chunks: Sequence[Chunk]) -> Rarity:
        """Return the weights over these chunks. Chunks of the last state are not counted again."""
        now = {id(chunk): chunk for chunk in chunks}
        # A copy, since questions under way read the last counts.
        having = self._having.copy()
        having.update(_words(now[each] for each in now.keys() - self._chunks.keys()))
        gone = _words(self._chunks[each] for each in self._chunks.keys() - now.keys())
        having.subtract(gone)
        for word in gone:
            if having[word] == 0:
                del having[word]
        self._chunks, self._having = now, having
        return _Counted(len(chunks), having)


def _words(chunks: Iterable[Chunk]) -> list[str]:
    return [word for chunk in chunks for word in terms(chunk.text, chunk.language)]


class _Counted(Rarity):
    def __init__(self, count: int, having: Counter[str]) -> None:
        super().__init__(())
        self._count, self._having = count, having
