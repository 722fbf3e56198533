"""From the bytes of an upload to a document. The file has a random name, and is read in a process with limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from rag_harness.dataset.document_languages import AUTO, with_languages
from rag_harness.dataset.ingest import load
from rag_harness.dataset.ingest.file_reading import reading
from rag_harness.dataset.ingest.parsed import unread_parts
from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.files.log import log
from rag_harness.service.problems import ProblemError
from rag_harness.types import Document


def read_upload(
    file: Path, name: str, metadata: Mapping[str, Any], charset: str = "", language: str = AUTO
) -> tuple[Document, dict[str, int]]:
    """Return the document in ``file``, under ``name``, and the counts of what reading left out, by reason.

    Each file is read in its own process, so it cannot see what another file left. ``language`` is that of all documents
    that state none; what is too short to tell counts as English.

    Raises:
        ProblemError: the file cannot be read, or has no text.
    """
    try:
        with reading(charset=charset):
            document = load(file, name)
    except UnicodeDecodeError as error:
        raise unreadable(f"not UTF-8 at byte {error.start}. Save the file as UTF-8") from error
    except DataError as error:
        raise unreadable(str(error).rstrip(".")) from error
    except PrerequisiteError as error:
        log.warning("Uploads of %s cannot be read: %s", file.suffix, error)
        raise ProblemError(
            503, "loader_missing", f"This server lacks what reads {file.suffix} files. Send it as text."
        ) from error
    except OSError:
        raise
    except Exception as error:  # a loader of the user may raise anything
        log.warning("The loader of %s failed", file.suffix, exc_info=True)
        raise unreadable(f"its loader failed: {type(error).__name__}") from error
    named = _with(with_name(document, file, name), metadata)
    return with_languages([named], language)[0], dropped_of(document)


def with_name(document: Document, file: Path, name: str) -> Document:
    """Return the document under its name: no trace of the random name, no half characters."""
    title = PurePosixPath(name).stem if document.title == file.stem else document.title
    text = without_half_characters(document.text)
    if not text.strip():
        raise unreadable("it holds no text")
    return replace(document, text=text, title=without_half_characters(title))


def without_half_characters(text: str) -> str:
    """Return ``text`` with a mark for each lone half of a character, since no database stores such halves."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("�" if "\ud800" <= each <= "\udfff" else each for each in text)
    return text


def _with(document: Document, metadata: Mapping[str, Any]) -> Document:
    title = without_half_characters(str(metadata.get("title") or document.title))
    return replace(document, title=title, metadata={**document.metadata, **metadata})


def dropped_of(document: Document) -> dict[str, int]:
    """Return the counts of what reading left out, by reason."""
    about = document.metadata
    pages = about.get("unread_pages", ())
    counted = {
        "hidden_characters": about.get("hidden_characters", 0),
        "unread_pages": len(pages) if isinstance(pages, (list, tuple)) else 0,
        "unread_parts": len(unread_parts(document)),
    }
    return {reason: count for reason, count in counted.items() if isinstance(count, int) and count}


def unreadable(why: str) -> ProblemError:
    """Return the problem of a file from which no document can be made."""
    return ProblemError(422, "unreadable", f"The file cannot be read: {why}.")
