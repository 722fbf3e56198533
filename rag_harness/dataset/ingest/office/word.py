"""Loader for docx. mammoth makes HTML of it, and our reader of HTML makes Markdown of that."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.html_reader import PageReader
from rag_harness.dataset.ingest.markdown_blocks import without_marks_of_loaders
from rag_harness.dataset.ingest.office.hidden_words import without_hidden_words
from rag_harness.dataset.ingest.office.package import OfficePackage
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.registry import missing_package
from rag_harness.types import Document

_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
"""
_BACK_TO_TEXT = re.compile(r' <a href="#(?:foot|end)note-ref-[^"]{1,40}">↑</a>')
"""What mammoth adds to each note."""


def _no_picture(_: object) -> dict[str, str]:
    return {"src": ""}  # its alternative text is kept


def load(file: Path, doc_id: str) -> Document:
    """Read a document of Word.

    Raises:
        UnreadableError, OSError: the file cannot be read, or the package that reads it is not installed.
    """
    return parsed_file("docx", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the text with its headings, lists, tables, links and notes.

    Deleted text, hidden text and comments are left out.
    """
    package = OfficePackage(data, "docx")
    seen, hidden = without_hidden_words(data, package)
    try:
        import mammoth
    except ImportError as error:
        raise UnreadableError(missing_package("loader 'docx'", error)) from None
    # A style map in the file could turn any text into any element.
    made = mammoth.convert_to_html(
        BytesIO(seen),
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(_no_picture),
        external_file_access=False,
    )
    page = PageReader()
    page.feed(_BACK_TO_TEXT.sub("", made.value.replace("\0", "")))
    page.close()
    text = page.text()
    if not text.strip():
        raise UnreadableError("holds no text: pictures alone? Recognise their text first")
    checked = checked_text(text, without_marks_of_loaders(text))
    lacks = ("equations: they are not read",) if any("oMath" in each.message for each in made.messages) else ()
    return Parsed(checked, package.title(), hidden=hidden, unread_parts=lacks)
