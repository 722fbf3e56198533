"""Why a document was not taken in, in words for its sender. Nothing is said of this server or of other tenants."""

from __future__ import annotations

from rag_harness.errors import (
    ChunkTooLongError,
    ModelCallError,
    NoRoomError,
    PrerequisiteError,
    RagHarnessError,
    RecordingMissError,
    UnreadableError,
)
from rag_harness.files.log import log
from rag_harness.files.room import NO_ROOM
from rag_harness.retrieval.indexes.live import LiveIndexError
from rag_harness.service.corpus.kept_texts import TextsNotMadeError
from rag_harness.service.problems import ProblemError, no_room
from rag_harness.service.state.problems import StateError


def problem_of(error: BaseException) -> ProblemError:
    """Return the problem that a client is told for an error of an ingest."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, (ChunkTooLongError, UnreadableError)):
        return _too_long(error)
    if isinstance(error, (RecordingMissError, PrerequisiteError, ModelCallError, TextsNotMadeError)):
        return _without_a_model(error)
    if _is_full(error):
        log.error("No room for a document: %s", error)
        return no_room()
    log.error("A document could not be taken in", exc_info=error)
    return ProblemError(500, "ingest_failed", "The document could not be taken in; the server's log says why.")


def _too_long(error: RagHarnessError) -> ProblemError:
    if isinstance(error, UnreadableError):
        return ProblemError(422, "unreadable", f"The file cannot be read: {error}.")
    return ProblemError(422, "chunk_too_long", "A part of the document is longer than the embedding model reads.")


def _without_a_model(error: RagHarnessError) -> ProblemError:
    log.warning("A document cannot be taken in: %s", error)
    if isinstance(error, TextsNotMadeError):
        detail = "What writes other texts of a document, summaries say, did not: the server's log says why."
        return ProblemError(503, "texts_not_made", f"{detail} What it wrote is kept. Send the document again later.")
    if isinstance(error, ModelCallError):
        return ProblemError(503, "embedding_failed", "The embedding model does not answer. Send it again later.")
    return ProblemError(
        503,
        "cannot_embed",
        "This server cannot embed: it plays back what was recorded, or its embedding model is not installed.",
    )


def _is_full(error: BaseException) -> bool:
    if isinstance(error, NoRoomError):
        return True
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    # The engine and SQLite give the reason only as text.
    said = str(error).lower()
    ours = isinstance(error, (StateError, LiveIndexError)) or not isinstance(error, RagHarnessError)
    return ours and any(word in said for word in ("full", "no space", "disk i/o error"))
