"""A folder of pages -> documents, with the metadata of ``structure.json`` where there is one."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.ingest import load, page_files
from rag_harness.types import Document

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
)


def read_knowledge_base(folder: Path) -> list[Document]:
    """Read every file below ``folder`` that there is a loader for, except README.md, ordered by path.

    Raises:
        DataError: the folder is missing or holds no page, or files cannot be read as UTF-8; every file is named.
    """
    if not folder.is_dir():
        raise DataError(f"No folder {folder}. Name your own with --rag-kb DIR or KB_DIR.")
    structure = _read_structure(folder / "structure.json")
    documents, problems = [], []
    for file in page_files(folder):
        doc_id = file.relative_to(folder).as_posix()
        try:
            documents.append(load(file, doc_id, structure.get(doc_id)))
        except UnicodeDecodeError as error:
            problems.append(f"{file}: not UTF-8 at byte {error.start}. Save the file as UTF-8.")
        except OSError as error:
            problems.append(f"{file}: cannot be read: {error.strerror}.")
    if problems:
        raise DataError("\n".join(problems))
    if not any(document.text.strip() for document in documents):
        raise DataError(f"No Markdown page with text in {folder}: a knowledge base is one or more .md files.")
    return documents


def _read_structure(file: Path) -> dict[str, dict[str, Any]]:
    if not file.is_file():
        return {}
    try:
        pages = json.loads(file.read_text(encoding="utf-8-sig"))["pages"]
        return {page["filename"]: {key: page[key] for key in _KEPT_KEYS if key in page} for page in pages}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: expected an object with a list 'pages' of objects with a 'filename' ({type(error).__name__}: "
            f"{error}). Mend it, or remove it: metadata is optional."
        ) from error


def digest_of(documents: list[Document]) -> str:
    """Return a digest of all pages and their metadata, for the fingerprint."""
    state = blake2b(digest_size=16)
    for document in documents:
        for part in (document.doc_id, document.text, json.dumps(dict(document.metadata), sort_keys=True)):
            encoded = part.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.hexdigest()
