"""The contents of a collection at one moment, and its stores of vectors and texts."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np

from rag_harness.core.cache import check_room
from rag_harness.core.errors import RagHarnessError
from rag_harness.core.log import log
from rag_harness.core.protocols import ChunkWriter, Experiment, Store, Stores
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Chunk, Document, IndexSpec
from rag_harness.data.documents import pages_digest
from rag_harness.models.array_store import key_of
from rag_harness.models.calls import LONGEST_ANSWER
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.service.database import Database

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


# The stores of a collection for computed vectors: bounded memory for questions, and a store beside the documents.
#
# The stores of a run grow with every question. That is right for a recording, but would fill a server's disk.

MOST_STORED_BYTES: Mapping[str, int] = {"tokens": 32 << 20, "vectors": 4 << 20}
"""The most bytes in memory, by kind."""
_OTHERWISE = 8 << 20
_YOUNG = 512
"""How many of the newest entries stay, however large: a batch that was just put is read next."""
_OVERHEAD = 250
"""The bytes of an entry beside its numbers: key, array, order."""


class MemoryStore:
    """Arrays by key: the newest are in memory; the stores below are read, but never written.

    Args:
        below: stores that are searched, in this order, for what is not in memory.
        most: the most bytes kept in memory.
    """

    def __init__(self, below: Sequence[Store] = (), most: int = _OTHERWISE) -> None:
        self._below, self._most = below, most
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._bytes = 0
        # Questions read while an ingest writes.
        self._lock = RLock()

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the array of each key; None if there is none."""
        with self._lock:
            found = [self._touched(key) for key in keys]
        for store in self._below:
            missing = [place for place, array in enumerate(found) if array is None]
            if not missing:
                break
            for place, array in zip(missing, store.get([keys[place] for place in missing]), strict=True):
                found[place] = array
        return found

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Keep arrays. If there are too many, the oldest are removed."""
        import numpy as np

        with self._lock:
            for key, array in items.items():
                self._forget([key])
                self._kept[key] = np.atleast_2d(array)
                self._bytes += self._kept[key].nbytes + _OVERHEAD
            for _ in range(len(self._kept) - _YOUNG):
                if self._bytes <= self._most:
                    break
                self._forget([next(iter(self._kept))])

    def remove(self, keys: Iterable[bytes]) -> None:
        """Remove these keys from memory."""
        with self._lock:
            self._forget(keys)

    def __len__(self) -> int:
        return len(self._kept)

    def _touched(self, key: bytes) -> Any:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def _forget(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            array = self._kept.pop(key, None)
            if array is not None:
                self._bytes -= array.nbytes + _OVERHEAD


class CollectionStores:
    """The stores of one collection; other collections do not read them.

    Args:
        recorded: vectors that were shipped or that runs have computed, by kind, read only; None if the mode reads
            nothing.
        own: the collection's stores for its documents, by kind.
        bounded: whether the oldest entries are removed if there are too many.
    """

    def __init__(self, recorded: Stores | None, own: Mapping[str, Store], bounded: bool = True) -> None:
        self._recorded, self._own, self._bounded = recorded, own, bounded
        self._opened: dict[tuple[str, str, str], MemoryStore] = {}
        self._lock = RLock()

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> MemoryStore:  # noqa: ARG002
        """Return the store of ``kind`` for one model and revision; the same object each time.

        A collection's entries for its own documents are its index. They are stored for a user's own parts, too.
        """
        named = kind, model, revision
        with self._lock:
            if named not in self._opened:
                most = MOST_STORED_BYTES.get(kind, _OTHERWISE) if self._bounded else sys.maxsize
                self._opened[named] = MemoryStore(self._below(*named), most)
            return self._opened[named]

    def flush(self) -> None:
        """Write nothing: entries are written when they are made."""

    def _below(self, kind: str, model: str, revision: str) -> list[Store]:
        own = [self._own[kind]] if kind in self._own else []
        recorded = [self._recorded.open(kind, model, revision)] if self._recorded is not None else []
        return [*own, *recorded]


# The token vectors of a collection's documents, in a file of their own. They are 100 times as large as a vector.
#
# This is a cache: a missing array is computed when a question needs it. A damaged file is deleted.

_TABLE = "CREATE TABLE IF NOT EXISTS tokens (key BLOB PRIMARY KEY, rows INTEGER NOT NULL, data BLOB NOT NULL) STRICT"
_SPARE = 8 << 20
"""Bytes of the disk that token vectors may not use."""
_SIDES = ("", "-wal", "-shm")


class TokenStore:
    """Arrays of float16, shape (tokens, d), by key. Any thread may use it.

    Args:
        file: made if it does not exist.
        made_by: model and revision; arrays of others are removed.
    """

    def __init__(self, file: Path, made_by: str) -> None:
        self._file, self._made_by = file, made_by
        self._lock = RLock()
        try:
            self._connection = self._opened()
        except sqlite3.DatabaseError as error:
            log.warning("Token vectors are computed again: their file is damaged (%s)", error)
            self._throw_away()
            self._connection = self._opened()

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the array of each key; None if there is none."""
        with self._lock:
            return [self._one(key) for key in keys]

    def lacks(self, keys: Sequence[bytes]) -> list[bool]:
        """Return for each key whether its array is missing."""
        with self._lock:
            found = [self._connection.execute("SELECT 1 FROM tokens WHERE key = ?", (key,)).fetchone() for key in keys]
        return [each is None for each in found]

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Keep arrays. They are on disk when this returns.

        Raises:
            NoRoomError: the disk has no room for them.
        """
        rows = [(key, len(array), np.ascontiguousarray(array, "<f2").tobytes()) for key, array in items.items()]
        # The data are written twice: to the log and to the file.
        check_room(self._file.parent, _SPARE + 2 * sum(len(data) for _, _, data in rows))
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?)", rows)

    def remove(self, keys: Iterable[bytes]) -> None:
        """Forget arrays."""
        with self._lock, self._connection:
            self._connection.executemany("DELETE FROM tokens WHERE key = ?", [(key,) for key in keys])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _one(self, key: bytes) -> Any:
        try:
            found = self._connection.execute("SELECT rows, data FROM tokens WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            log.warning("Token vectors cannot be read and are computed: %s", error)
            return None
        return np.frombuffer(found[1], "<f2").reshape(found[0], -1) if found else None

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS made_by (name TEXT PRIMARY KEY) STRICT")
            if connection.execute("SELECT count(*) FROM made_by WHERE name <> ?", (self._made_by,)).fetchone()[0]:
                connection.execute("DROP TABLE IF EXISTS tokens")
                connection.execute("DELETE FROM made_by")
            connection.execute(_TABLE)
            connection.execute("INSERT OR IGNORE INTO made_by VALUES (?)", (self._made_by,))
            connection.commit()
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _throw_away(self) -> None:
        for side in _SIDES:
            Path(f"{self._file}{side}").unlink(missing_ok=True)


# Other texts of chunks, summaries say: made when a document comes, and kept by content, so that each is made once.

_TOGETHER = 32
"""How many texts are made between two writes. If one fails, at most these are made again."""
_ADD = """INSERT OR REPLACE INTO kept_texts (collection_id, key, name, text, metadata, created)
    VALUES (?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))"""
_Kept = tuple[str, dict[str, Any]]


class TextsNotMadeError(RagHarnessError):
    """Other texts of chunks could not be made. Those that were made are kept."""


class KeptTexts:
    """The other texts of a collection's chunks.

    Args:
        database: the service's.
        collection: the number of the collection.
        check: called before each few texts are made; raises to end the work.
    """

    def __init__(self, database: Database, collection: int, check: Callable[[], None] = lambda: None) -> None:
        self._database, self._collection, self._check = database, collection, check

    def keeping(self, writer: ChunkWriter) -> ChunkWriter:
        """Return ``writer`` such that it is asked only for texts that it has not made before."""
        return _Keeping(self, writer)

    def rewritten(self, writer: ChunkWriter, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the chunks with the texts that ``writer`` makes of them, or has made.

        Raises:
            TextsNotMadeError: some could not be made.
        """
        made_by = json.dumps(writer.identity, sort_keys=True)
        keys = [_key(made_by, chunk) for chunk in chunks]
        kept = self._database.read(lambda c: _read(c, self._collection, keys))
        missing = list({key: chunk for key, chunk in zip(keys, chunks, strict=True) if key not in kept}.items())
        if missing:
            log.info("Other texts of %d chunks are made, %d are there", len(missing), len(kept))
        for start in range(0, len(missing), _TOGETHER):
            self._check()
            kept.update(self._made(writer, dict(missing[start : start + _TOGETHER])))
        return [_with(chunk, kept[key]) for key, chunk in zip(keys, chunks, strict=True)]

    def forget(self, name: str, used: Iterable[str] = ()) -> None:
        """Forget the texts of the document ``name``, but for those that are ``used``."""
        stay = json.dumps([json.dumps(text) for text in used])
        self._database.write_now(
            lambda c: c.execute(
                "DELETE FROM kept_texts WHERE collection_id = ? AND name = ? "
                "AND text NOT IN (SELECT value FROM json_each(?))",
                (self._collection, name, stay),
            )
        )

    def _made(self, writer: ChunkWriter, chunks: Mapping[bytes, Chunk]) -> dict[bytes, _Kept]:
        try:
            written = writer.rewritten(list(chunks.values()))
        except RagHarnessError as error:
            raise TextsNotMadeError(f"Other texts of chunks, summaries say, could not be made: {error}") from error
        made = {
            key: (other.text, _added(chunk, other)) for (key, chunk), other in zip(chunks.items(), written, strict=True)
        }
        rows = [
            (self._collection, key, chunks[key].doc_id, json.dumps(text), json.dumps(added))
            for key, (text, added) in made.items()
        ]
        self._database.write_now(lambda c: c.executemany(_ADD, rows))
        return made


@dataclass(frozen=True)
class _Keeping:
    texts: KeptTexts
    writer: ChunkWriter

    @property
    def identity(self) -> Any:
        return self.writer.identity

    def rewritten(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        return self.texts.rewritten(self.writer, chunks)


def forget_unused(connection: sqlite3.Connection, collection: int, oldest: str) -> None:
    """Forget texts of documents that did not come in, if they were made before ``oldest``."""
    connection.execute(
        "DELETE FROM kept_texts WHERE collection_id = ? AND created < ? "
        "AND name NOT IN (SELECT name FROM documents WHERE documents.collection_id = kept_texts.collection_id)",
        (collection, oldest),
    )


def _key(made_by: str, chunk: Chunk) -> bytes:
    """Return the key of a chunk by all that a writer may read of it, but for its place in the document."""
    metadata = json.dumps(dict(chunk.metadata), sort_keys=True, default=str)
    return key_of(made_by, chunk.doc_id, json.dumps(list(chunk.section)), metadata, chunk.text)


def _read(connection: sqlite3.Connection, collection: int, keys: Iterable[bytes]) -> dict[bytes, _Kept]:
    asked = "SELECT text, metadata FROM kept_texts WHERE collection_id = ? AND key = ?"
    found = {key: connection.execute(asked, (collection, key)).fetchone() for key in keys}
    return {
        key: (json.loads(row["text"]), json.loads(row["metadata"])) for key, row in found.items() if row is not None
    }


def _added(chunk: Chunk, other: Chunk) -> dict[str, Any]:
    return {key: value for key, value in other.metadata.items() if chunk.metadata.get(key) != value}


def _with(chunk: Chunk, kept: _Kept) -> Chunk:
    text, added = kept
    return replace(chunk, text=text, metadata={**chunk.metadata, **added} if added else chunk.metadata)
