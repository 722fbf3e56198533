"""Loader for Markdown: the unchanged text, with the first heading as title."""

from __future__ import annotations

from pathlib import Path

from rag_harness.dataset.ingest.file_places import read_bytes
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

_TITLE_WITHIN = 1 << 18
"""Characters in which a title is searched for. Splitting 32 MB into lines takes half a gigabyte."""


def load(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnicodeDecodeError, UnreadableError, OSError: the file cannot be read.
    """
    # Line ends and a byte order mark stay, so that offsets are offsets in the file.
    text = read_bytes(file).decode("utf-8")
    if "\0" in text:
        raise UnreadableError("holds NUL bytes: a binary file, or UTF-16. Save it as UTF-8")
    return Document(doc_id, text, _first_heading(text) or file.stem)


def _first_heading(text: str) -> str:
    for line in text[:_TITLE_WITHIN].removeprefix("\ufeff").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return ""
