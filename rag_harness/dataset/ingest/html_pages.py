"""Loader for HTML: the visible text as Markdown. It uses the standard library's parser, without recursion."""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.dataset.ingest.charset import decoded
from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.html_reader import PageReader
from rag_harness.dataset.ingest.markdown_blocks import without_marks_of_loaders
from rag_harness.dataset.ingest.other_kinds import check_kind
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

_HEAD = 4096
"""Bytes in which a declaration of the charset is searched for; browsers read 1,024."""
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


def load(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnreadableError, OSError: the file cannot be read.
    """
    return parsed_file("html", file).document(file, doc_id)


def parse(data: bytes, charset: str = "") -> Parsed:
    """Return the visible text of ``data`` as Markdown, and the number of hidden characters that were left out.

    ``charset`` replaces the guess for a page that names none and is not UTF-8.
    """
    check_kind(data, "HTML")
    declared = _DECLARED.search(data[:_HEAD])
    found = decoded(data, declared[1].decode("ascii", "replace") if declared else "", charset)
    page = PageReader()
    try:
        page.feed(found.text.replace("\0", ""))
        page.close()
    except AssertionError as error:  # the standard library's parser refuses some declarations in this way
        raise UnreadableError(f"cannot be parsed as HTML: {error}. Save it anew"[:300]) from None
    text = page.text()
    return Parsed(
        checked_text(text, without_marks_of_loaders(text)), page.title, hidden=page.hidden, guessed=found.guessed
    )
