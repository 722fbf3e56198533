"""Other texts of chunks, summaries say: made when a document comes, and kept by content, so that each is made once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.errors import RagHarnessError
from rag_harness.files.log import log
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import ChunkWriter
from rag_harness.service.state.database import Database
from rag_harness.types import Chunk

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
