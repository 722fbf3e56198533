"""Loader for PDF: the text of its pages, in order. Only files whose names begin with ``pdf`` know pypdf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.markdown_blocks import without_marks_of_loaders
from rag_harness.dataset.ingest.other_kinds import check_kind
from rag_harness.dataset.ingest.parsed import Parsed, joined_pages
from rag_harness.dataset.ingest.pdf_lines import PageLine, lines_of, titles_of, with_headings
from rag_harness.dataset.ingest.pdf_tables import LEAST_ROWS, with_tables
from rag_harness.dataset.ingest.process_limits import OUTPUT_BYTES, PAGES
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

_TABLES_WITHIN = 3 << 20
"""Bytes of drawing in which tables are looked for. That takes as long as the text; all of it has 14 s."""
_NO_CIPHER = "is encrypted with AES. Save it without its password, or run: pip install cryptography"


def load(file: Path, doc_id: str) -> Document:
    """Read a PDF.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is a scan without text.
    """
    return parsed_file("pdf", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the text of ``data`` with the offset of each page, its headings and simple tables as Markdown.

    An unreadable page is empty.
    """
    reader = _opened(data)
    pages: list[list[PageLine]] = []
    unread: dict[int, str] = {}
    length = 0
    for number, page in enumerate(_pages(reader), 1):
        if isinstance(page, Exception):
            unread[number] = f"{type(page).__name__}: {page}"
        pages.append([] if isinstance(page, Exception) else page)
        length += sum(len(line.text) for line in pages[-1])
        if length > OUTPUT_BYTES:
            raise UnreadableError(f"holds more than {OUTPUT_BYTES >> 20} MB of text. Split it")
    if not any(line.text.strip() for lines in pages for line in lines):
        why = next(iter(unread.values()), "a scan? Recognise its text first")
        raise UnreadableError(f"no text in its {len(pages)} pages: {why}"[:300])
    looked = _find_tables(reader, pages)
    text, starts = joined_pages(list(with_headings(pages, titles_of(reader))))
    lacks = () if looked == len(pages) else (f"tables: looked for on pages 1 to {looked} of {len(pages)}",)
    checked = checked_text(text, without_marks_of_loaders(text))
    return Parsed(checked, _title(reader), starts, unread_pages=tuple(unread), unread_parts=lacks)


def _find_tables(reader: Any, pages: list[list[PageLine]]) -> int:
    """Write the tables of the first pages as Markdown; return how many pages were looked at."""
    size = 0
    for number, lines in enumerate(pages):
        with suppress(Exception):  # a page without content, or a damaged one
            size += len(reader.pages[number].get_contents().get_data())
        if size > _TABLES_WITHIN:
            return number
        if len(lines) >= LEAST_ROWS:
            pages[number] = with_tables(reader.pages[number], lines)
    return len(pages)


def _opened(data: bytes) -> Any:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PdfReadError

    try:
        reader = PdfReader(BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("is encrypted. Save it without its password")
    except DependencyError:
        raise UnreadableError(_NO_CIPHER) from None
    except PdfReadError:
        if b"%PDF-" in data:
            raise
        check_kind(data, "PDF")
        raise UnreadableError("is no PDF. Remove it, or save it anew") from None
    count = len(reader.pages)
    if not count:
        raise UnreadableError("has no page. Remove it, or save it anew")
    if count > PAGES:
        raise UnreadableError(f"has {count} pages, more than {PAGES}. Split it")
    return reader


def _pages(reader: Any) -> Iterator[list[PageLine] | Exception]:
    from pypdf.errors import DependencyError

    for number in range(len(reader.pages)):
        try:
            yield lines_of(reader.pages[number])
        except MemoryError:
            raise
        except DependencyError:  # the next pages need it, too
            raise UnreadableError(_NO_CIPHER) from None
        except Exception as error:  # pypdf raises any error at a damaged page; the other pages may be fine
            yield error


def _title(reader: Any) -> str:
    try:
        return " ".join(str(reader.metadata.title or "").split())[:300] if reader.metadata else ""
    except Exception:  # any part of the file may be damaged
        return ""
