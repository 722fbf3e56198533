"""Reader of a folder of pages, with the metadata of ``structure.json`` if it exists."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.dataset.ingest import kinds
from rag_harness.dataset.library import Library, ParsedKeeping, read_library, sources_in
from rag_harness.dataset.pages_named import check_folder
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json
from rag_harness.types import Document
from rag_harness.words.comparison import composed

NOWHERE = ParsedKeeping()

_KEPT_KEYS = (
    "id",
    "title",
    "category",
    "primary_topic",
    "secondary_topics",
    "topics",
    "version",
    "status",
    "effective_date",
    "supersedes",
    "language",
)


def read_knowledge_base(folder: Path, keeping: ParsedKeeping = NOWHERE) -> list[Document]:
    """Read every file below ``folder`` that has a loader, except README.md, ordered by path.

    Raises:
        DataError: the folder is missing or has no page, or files cannot be read; names every file.
    """
    library = read_folder(folder, keeping)
    if library.unread:
        raise DataError("\n".join([*(each.line for each in library.unread), *_remedy(library)]))
    return list(library.documents)


def read_folder(folder: Path, keeping: ParsedKeeping = NOWHERE) -> Library:
    """Read all readable files below ``folder``, and name the others.

    Raises:
        DataError: the folder is missing, has no file with a loader, or has no text.
    """
    check_folder(folder)
    sources, refused = sources_in(folder, read_structure(folder / "structure.json"))
    library = read_library(sources, refused, keeping)
    if not library.unread and not any(document.text.strip() for document in library.documents):
        raise DataError(f"No page with text in {folder}: a knowledge base is one or more files of {kinds()}.")
    return library


def _remedy(library: Library) -> list[str]:
    """Return the way to go on without the unread files; nothing if all are Markdown, which is easily mended."""
    mixed = any(each.file.suffix.lower() != ".md" for each in library.unread)
    return ["Mend or remove these files, or leave them out of the run: --rag-unreadable=skip"] if mixed else []


def read_structure(file: Path) -> dict[str, dict[str, Any]]:
    """Return the metadata of pages by path; empty where the file does not exist.

    Raises:
        DataError: the file cannot be read.
    """
    if not file.is_file():
        return {}
    try:
        pages = read_json(file.read_text(encoding="utf-8-sig"))["pages"]
        return {composed(page["filename"]): {key: page[key] for key in _KEPT_KEYS if key in page} for page in pages}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: expected an object with a list 'pages' of objects with a 'filename' ({type(error).__name__}: "
            f"{error}). Mend it, or remove it: metadata is optional."
        ) from error


def pages_digest(documents: list[Document]) -> str:
    """Return a digest of all pages and their metadata, for the fingerprint."""
    state = blake2b(digest_size=16)
    for document in documents:
        pages = [json.dumps(document.pages)] if document.pages else []
        for part in (document.doc_id, document.text, json.dumps(dict(document.metadata), sort_keys=True), *pages):
            encoded = part.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.hexdigest()
