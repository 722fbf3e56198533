"""How much each collection has, as the database says."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from rag_harness.service.state.database import Database

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
