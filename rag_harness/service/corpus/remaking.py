"""Cuts and embeds documents again if they were cut and embedded with other parts. Their text is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from rag_harness.files.log import log
from rag_harness.service.corpus import document_rows
from rag_harness.service.corpus.loading import Part
from rag_harness.service.corpus.preparing import Prepared, Preparer
from rag_harness.service.state.database import Database

_BATCH = 16
_UNFINISHED = "being made"


def remake(database: Database, collection: int, made_of: str, preparer: Preparer, part: Part) -> None:
    """Make cuts and vectors of a collection as ``made_of`` says. If a start is killed, the next begins anew.

    Args:
        database: the service's.
        collection: the number of the collection.
        made_of: everything that decides cuts and vectors.
        preparer: cuts and embeds.
        part: each batch is loaded in a block of it.

    Raises:
        RagHarnessError: a document cannot be embedded.
    """
    if database.read(lambda c: document_rows.made_of(c, collection)) == made_of:
        return
    ready = database.read(lambda c: document_rows.ready(c, collection))
    if ready:
        log.info(
            "%d documents of collection %d are cut and embedded anew: other parts are served", len(ready), collection
        )
        database.write_now(lambda c: document_rows.set_made_of(c, collection, _UNFINISHED))
    for start in range(0, len(ready), _BATCH):
        some = ready[start : start + _BATCH]
        with part(start, len(some), len(ready)):
            prepared = preparer.prepared([document for _, document in some])
            database.write_now(_writing([row for row, _ in some], prepared))
    database.write_now(lambda c: document_rows.set_made_of(c, collection, made_of))


def _writing(numbers: Sequence[int], prepared: Sequence[Prepared]) -> Callable[[sqlite3.Connection], None]:
    def write(connection: sqlite3.Connection) -> None:
        for row, made in zip(numbers, prepared, strict=True):
            document_rows.fill(connection, row, made, document_rows.dropped_of(connection, row))

    return write
