"""Markdown: the text as it is, and the first heading as its title."""

from __future__ import annotations

from pathlib import Path

from rag_harness.types import Document


def load(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnicodeDecodeError, OSError: it cannot be read.
    """
    # newline="" keeps \r\n and plain utf-8 a byte order mark, so that offsets are those of the file.
    with file.open(encoding="utf-8", newline="") as stream:
        text = stream.read()
    return Document(doc_id, text, _first_heading(text) or file.stem)


def _first_heading(text: str) -> str:
    for line in text.removeprefix("\ufeff").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return ""
