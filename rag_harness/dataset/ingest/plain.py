"""Loader for plain text in any charset. Text that looks like Markdown is later cut like Markdown."""

from __future__ import annotations

from pathlib import Path

from rag_harness.dataset.ingest.charset import decoded
from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.other_kinds import check_kind
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.types import Document


def load(file: Path, doc_id: str) -> Document:
    """Read a text file.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is no text.
    """
    return parsed_file("txt", file).document(file, doc_id)


def parse(data: bytes, charset: str = "") -> Parsed:
    """Return the text of ``data``. ``charset`` replaces the guess for a file that is not UTF-8."""
    check_kind(data, "text")
    found = decoded(data, named=charset)
    return Parsed(checked_text(found.text), guessed=found.guessed)
