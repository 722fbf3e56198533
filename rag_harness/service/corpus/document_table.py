"""The documents of a service in SQLite, the sizes of collections, and the index that must agree with them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from rag_harness.core.log import log
from rag_harness.core.settings import Settings
from rag_harness.core.types import Document, Matrix
from rag_harness.data.loaders.child_process import GUESSED, read_in
from rag_harness.retrieval.indexes import LiveIndexError, LivePoints, opening_of
from rag_harness.retrieval.ingest import chunks_from, cuts_of
from rag_harness.service.corpus.contents import CutDocument, DocumentInfo, LiveDocument
from rag_harness.service.corpus.preparation import Prepared
from rag_harness.service.database import DATABASE, Database, StateError

_SHOWN = "id, public_id, name, status, why, chunks, dropped, coverage, bytes, created"
_WORDS = "id, name, text, title, metadata, pages, cuts, windows, further"


@contextmanager
def _as_written() -> Iterator[None]:
    """Name the file if a row cannot be parsed: SQLite does not see damage inside a text."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StateError.of(Path(DATABASE), error) from error


def now() -> str:
    """Return the time in the stored form: UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def begin(
    connection: sqlite3.Connection, collection: int, name: str, size: int = 0, origin: str = "upload"
) -> tuple[int, str]:
    """Write that a document is on its way; return its number and its public id."""
    public = uuid4().hex
    row = connection.execute(
        "INSERT INTO documents (public_id, collection_id, name, status, origin, bytes, created) "
        "VALUES (?, ?, ?, 'pending', ?, ?, ?)",
        (public, collection, name, origin, size, now()),
    )
    return int(row.lastrowid or 0), public


def fill(connection: sqlite3.Connection, row: int, prepared: Prepared, dropped: dict[str, int]) -> tuple[int, ...]:
    """Write the contents of a pending document; return the numbers of its points."""
    document = prepared.document
    (cuts, windows), *further = [_written(document, cut) for cut in prepared.cuts]
    connection.execute(
        "UPDATE documents SET text = ?, title = ?, metadata = ?, pages = ?, cuts = ?, windows = ?, further = ?, "
        "chunks = ?, dropped = ?, coverage = ?, why = ? WHERE id = ?",
        (
            document.text,
            document.title,
            json.dumps(dict(document.metadata)),
            json.dumps(list(document.pages)),
            cuts,
            windows,
            json.dumps(further),
            len(prepared.chunks),
            json.dumps(dropped),
            prepared.coverage,
            _remark(document),
            row,
        ),
    )
    connection.execute("DELETE FROM points WHERE document_id = ?", (row,))
    return tuple(_add_point(connection, row, vector) for vector in prepared.vectors)


def _written(document: Document, cut: CutDocument) -> tuple[str, str]:
    """Return the cuts of one way, and its windows if it has any, as JSON."""
    windows = json.dumps(cuts_of(document, cut.indexed)) if cut.indexed != cut.chunks else ""
    return json.dumps(cuts_of(document, cut.chunks)), windows


def _remark(document: Document) -> str:
    charset = document.metadata.get(GUESSED)
    return f"It was {read_in(str(charset))}." if charset else ""


def _add_point(connection: sqlite3.Connection, row: int, vector: Any) -> int:
    data = np.ascontiguousarray(vector, "<f4").tobytes()
    added = connection.execute("INSERT INTO points (document_id, vector) VALUES (?, ?)", (row, data))
    return int(added.lastrowid or 0)


def make_ready(connection: sqlite3.Connection, collection: int, rows: Iterable[int]) -> None:
    """Let pending documents replace the documents of the same names, in one step."""
    for row in rows:
        connection.execute(
            "UPDATE documents SET status = 'deleting' WHERE collection_id = ? AND status = 'ready' "
            "AND name = (SELECT name FROM documents WHERE id = ?)",
            (collection, row),
        )
        connection.execute("UPDATE documents SET status = 'ready' WHERE id = ?", (row,))


def fail(connection: sqlite3.Connection, row: int, why: str) -> None:
    """Write that a pending document failed, and remove what there is of it."""
    connection.execute("DELETE FROM points WHERE document_id = ?", (row,))
    connection.execute(
        "UPDATE documents SET status = 'failed', why = ?, text = '', cuts = '[]', windows = '', further = '[]', "
        "chunks = 0 WHERE id = ?",
        (why, row),
    )


def status_of(connection: sqlite3.Connection, collection: int, public: str) -> tuple[int, str] | None:
    """Return a document's number and status; None if it does not exist."""
    found = connection.execute(
        "SELECT id, status FROM documents WHERE collection_id = ? AND public_id = ? AND status <> 'deleting'",
        (collection, public),
    ).fetchone()
    return (int(found["id"]), str(found["status"])) if found else None


def make_leave(connection: sqlite3.Connection, documents: Iterable[int]) -> None:
    """Hide documents from questions."""
    connection.executemany("UPDATE documents SET status = 'deleting' WHERE id = ?", [(row,) for row in documents])


def remove(connection: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Remove documents and everything that belongs to them."""
    connection.executemany("DELETE FROM documents WHERE id = ?", [(row,) for row in rows])


def shown(connection: sqlite3.Connection, collection: int) -> list[DocumentInfo]:
    """Return the details of the documents of a collection, in the order of their names."""
    found = connection.execute(
        f"SELECT {_SHOWN} FROM documents WHERE collection_id = ? AND status <> 'deleting' ORDER BY name, id",
        (collection,),
    )
    return [_info(each) for each in found]


def one(connection: sqlite3.Connection, collection: int, public: str) -> DocumentInfo | None:
    """Return the details of one document; None if it does not exist."""
    found = connection.execute(
        f"SELECT {_SHOWN} FROM documents WHERE collection_id = ? AND public_id = ? AND status <> 'deleting'",
        (collection, public),
    ).fetchone()
    return _info(found) if found else None


def of_rows(connection: sqlite3.Connection, documents: Sequence[int]) -> list[DocumentInfo]:
    """Return the details of documents by their numbers, in that order."""
    asked = f"SELECT {_SHOWN} FROM documents WHERE id = ?"
    return [_info(connection.execute(asked, (row,)).fetchone()) for row in documents]


@_as_written()
def _info(row: sqlite3.Row) -> DocumentInfo:
    return DocumentInfo(
        doc_id=row["public_id"],
        name=row["name"],
        status=row["status"],
        why=row["why"],
        chunks=row["chunks"],
        dropped=json.loads(row["dropped"]),
        coverage=row["coverage"],
        bytes=row["bytes"],
        created=row["created"],
    )


def ordered(connection: sqlite3.Connection, collection: int) -> tuple[LiveDocument, ...]:
    """Return all documents that questions find, in the order of their places."""
    points: dict[int, list[int]] = {}
    for each in connection.execute(
        "SELECT points.id, document_id FROM points JOIN documents ON documents.id = document_id "
        "WHERE collection_id = ? AND status = 'ready' ORDER BY points.id",
        (collection,),
    ):
        points.setdefault(each["document_id"], []).append(each["id"])
    found = _ready(connection, collection)
    held = [_held(each, tuple(points.get(each["id"], ()))) for each in found]
    return tuple(sorted(held, key=lambda each: each.place))


def ready(connection: sqlite3.Connection, collection: int) -> list[tuple[int, Document]]:
    """Return the documents that questions find, with their numbers."""
    return [(int(each["id"]), document_of(each)) for each in _ready(connection, collection)]


def _ready(connection: sqlite3.Connection, collection: int) -> sqlite3.Cursor:
    return connection.execute(
        f"SELECT {_WORDS} FROM documents WHERE collection_id = ? AND status = 'ready' ORDER BY id", (collection,)
    )


def ready_points(connection: sqlite3.Connection, collection: int) -> list[int]:
    """Return the numbers of the points that questions may find."""
    found = connection.execute(
        "SELECT points.id FROM points JOIN documents ON documents.id = document_id "
        "WHERE collection_id = ? AND status = 'ready' ORDER BY points.id",
        (collection,),
    )
    return [int(each["id"]) for each in found]


def held_of(row: int, prepared: Prepared, points: tuple[int, ...]) -> LiveDocument:
    """Return a document as it is held in memory once it is written."""
    return LiveDocument(row, prepared.document, prepared.cuts, points)


@_as_written()
def _held(row: sqlite3.Row, points: tuple[int, ...]) -> LiveDocument:
    document = document_of(row)
    written = [(row["cuts"], row["windows"]), *json.loads(row["further"])]
    return LiveDocument(row["id"], document, tuple(_cut(document, *each) for each in written), points)


def _cut(document: Document, cuts: str, windows: str) -> CutDocument:
    chunks = tuple(chunks_from(document, json.loads(cuts)))
    return CutDocument(chunks, tuple(chunks_from(document, json.loads(windows))) if windows else chunks)


@_as_written()
def document_of(row: sqlite3.Row) -> Document:
    """Return the document of a row, with its text."""
    pages = tuple(json.loads(row["pages"]))
    return Document(row["name"], row["text"], row["title"], json.loads(row["metadata"]), pages)


@_as_written()
def vectors(connection: sqlite3.Connection, points: Sequence[int]) -> Matrix:
    """Return vectors by the numbers of their points, in that order, shape (n, d)."""
    found = [connection.execute("SELECT vector FROM points WHERE id = ?", (point,)).fetchone() for point in points]
    rows = np.array([np.frombuffer(each["vector"], "<f4") for each in found], np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("a vector has numbers that are not finite")
    return rows


def settle(connection: sqlite3.Connection, collection: int, oldest: str) -> None:
    """End what a server had not ended: pending documents have failed, and deleted ones are removed.

    Failures before ``oldest`` are removed.
    """
    pending = connection.execute(
        "SELECT id FROM documents WHERE collection_id = ? AND status = 'pending'", (collection,)
    ).fetchall()
    for each in pending:
        fail(connection, each["id"], "The server was stopped before it was taken in. Send it again.")
    connection.execute("DELETE FROM documents WHERE collection_id = ? AND status = 'deleting'", (collection,))
    connection.execute(
        "DELETE FROM documents WHERE collection_id = ? AND status = 'failed' AND (created < ? OR origin = 'folder')",
        (collection, oldest),
    )


@_as_written()
def dropped_of(connection: sqlite3.Connection, row: int) -> dict[str, int]:
    """Return the counts of what was left out of a document, by reason."""
    found = connection.execute("SELECT dropped FROM documents WHERE id = ?", (row,)).fetchone()
    return dict(json.loads(found["dropped"]))


def set_dropped(connection: sqlite3.Connection, dropped: Mapping[int, dict[str, int]]) -> None:
    """Write the counts of what was left out of documents, by their numbers."""
    noted = [(json.dumps(counts), row) for row, counts in dropped.items()]
    connection.executemany("UPDATE documents SET dropped = ? WHERE id = ?", noted)


def files(connection: sqlite3.Connection, collection: int) -> dict[str, str]:
    """Return the digest of each file that was taken from the folder, by name."""
    found = connection.execute("SELECT name, digest FROM folder_files WHERE collection_id = ?", (collection,))
    return {each["name"]: each["digest"] for each in found}


def note_files(connection: sqlite3.Connection, collection: int, digests: Mapping[str, str]) -> None:
    """Write which files were taken from the folder."""
    noted = [(collection, name, digest) for name, digest in digests.items()]
    connection.executemany("INSERT OR REPLACE INTO folder_files VALUES (?, ?, ?)", noted)


def forget_files(connection: sqlite3.Connection, collection: int, names: Iterable[str]) -> None:
    """Forget files that are no longer in the folder."""
    gone = [(collection, name) for name in names]
    connection.executemany("DELETE FROM folder_files WHERE collection_id = ? AND name = ?", gone)


def uploads(connection: sqlite3.Connection, collection: int) -> set[str]:
    """Return the names of the uploaded documents that questions find."""
    found = connection.execute(
        "SELECT name FROM documents WHERE collection_id = ? AND status = 'ready' AND origin = 'upload'", (collection,)
    )
    return {each["name"] for each in found}


def state_id(connection: sqlite3.Connection) -> str:
    """Return the name of this state, which no other state has."""
    return str(connection.execute("SELECT id FROM state").fetchone()["id"])


def collection(connection: sqlite3.Connection, name: str) -> int:
    """Return the number of the collection ``name``; it is made if it does not exist."""
    connection.execute("INSERT OR IGNORE INTO collections (name, created) VALUES (?, ?)", (name, now()))
    return int(connection.execute("SELECT id FROM collections WHERE name = ?", (name,)).fetchone()["id"])


def collections(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of each collection by its name."""
    return {each["name"]: each["id"] for each in connection.execute("SELECT id, name FROM collections ORDER BY id")}


def made_of(connection: sqlite3.Connection, number: int) -> str:
    """Return the parts that made the cuts and vectors of a collection."""
    return str(connection.execute("SELECT made_of FROM collections WHERE id = ?", (number,)).fetchone()["made_of"])


def set_made_of(connection: sqlite3.Connection, number: int, made_of: str) -> None:
    """Write which parts make the cuts and vectors of a collection."""
    connection.execute("UPDATE collections SET made_of = ? WHERE id = ?", (made_of, number))


_BATCH = 1_000
_SAMPLE = 64
_NEAR = 1e-3
"""How much a number of a vector may differ: the engine scales vectors to unit length again."""
DAMAGED = "shard.damaged"

VectorsOf = Callable[[Sequence[int]], Matrix]


def reconciled(
    settings: Settings, index: str, folder: Path, name: str, wanted: Sequence[int], vectors_of: VectorsOf
) -> LivePoints:
    """Return a collection's index with exactly the points ``wanted``. A damaged index is moved away and built again.

    Raises:
        LiveIndexError: a server does not answer, or the folder cannot be written.
        NoRoomError: the disk is full.
        SettingsError: the server's URL is not valid.
    """
    shard, open_points = folder / "shard", opening_of(index)
    if settings.qdrant_url:
        return _made_same(open_points(settings, shard, name), wanted, vectors_of)
    try:
        points = open_points(settings, shard, name)
        return _made_same(points, wanted, vectors_of)
    except LiveIndexError as error:
        log.warning(
            "The index of collection %s is damaged, moved to %s and made again: %s", folder.name, DAMAGED, error
        )
        shutil.rmtree(folder / DAMAGED, ignore_errors=True)
        if shard.exists():
            shard.rename(folder / DAMAGED)
        return _made_same(open_points(settings, shard, name), wanted, vectors_of)


def _made_same(points: LivePoints, wanted: Sequence[int], vectors_of: VectorsOf) -> LivePoints:
    try:
        there = points.ids()
        _check_sample(points, [point for point in wanted if point in there], vectors_of)
        strange = sorted(there.difference(wanted))
        missing = [point for point in wanted if point not in there]
        if strange or missing:
            log.info("%d points too many in the index, %d too few", len(strange), len(missing))
        points.remove(strange)
        for start in range(0, len(missing), _BATCH):
            some = missing[start : start + _BATCH]
            points.add(some, vectors_of(some))
        points.tidy()
    except BaseException:
        with suppress(LiveIndexError):
            points.close()
        raise
    return points


def _check_sample(points: LivePoints, known: Sequence[int], vectors_of: VectorsOf) -> None:
    """Compare some vectors: after a power cut a file may be all zeros, and the engine opens it without an error."""
    some = known[:: len(known) // _SAMPLE + 1]
    if not some:
        return
    # In float64, since squares of damaged numbers may exceed a float32.
    found, kept = points.vectors(some), vectors_of(some).astype(np.float64)
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    for point, vector in zip(some, kept / np.where(lengths == 0, 1, lengths), strict=True):
        if point not in found or not np.allclose(found[point], vector, atol=_NEAR):
            raise LiveIndexError(f"point {point} does not have the vector that was written")


# How much each collection has, as the database says.

_READY = "FROM documents WHERE collection_id = collections.id AND status = 'ready'"
_SIZES = f"""SELECT name, (SELECT COUNT(*) {_READY}), (SELECT COALESCE(SUM(chunks), 0) {_READY}),
    (SELECT COUNT(*) FROM points WHERE document_id IN (SELECT id {_READY}))
    FROM collections"""


class CollectionSize(NamedTuple):
    """The ready documents of a collection, their chunks, and their vectors in the index.

    A chunk that is longer than the embedder reads has several vectors where the index holds windows of chunks.
    """

    docs: int = 0
    chunks: int = 0
    index_size: int = 0


def collection_sizes(database: Database) -> dict[str, CollectionSize]:
    """Return the size of each collection, by name."""

    def read(connection: sqlite3.Connection) -> dict[str, CollectionSize]:
        return {name: CollectionSize(*counts) for name, *counts in connection.execute(_SIZES)}

    return database.read(read)


def total_size(sizes: Iterable[CollectionSize]) -> CollectionSize:
    """Return the sum of sizes."""
    return CollectionSize(*map(sum, zip(CollectionSize(), *sizes, strict=True)))
