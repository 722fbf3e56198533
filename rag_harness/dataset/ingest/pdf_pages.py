"""Loader for PDF: the text of its pages, in order. Only this file imports pypdf."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.process_limits import OUTPUT_BYTES, PAGES
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

BETWEEN = "\n\n"
"""Text between two pages."""
_NO_CIPHER = "is encrypted with AES. Save it without its password, or run: pip install cryptography"
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})


def load(file: Path, doc_id: str) -> Document:
    """Read a PDF.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is a scan without text.
    """
    return parsed_file("pdf", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the text of ``data`` with the offset of each page. An unreadable page is empty."""
    reader = _opened(data)
    texts: list[str] = []
    unread: dict[int, str] = {}
    length = 0
    for number, page in enumerate(_pages(reader), 1):
        if isinstance(page, Exception):
            unread[number] = f"{type(page).__name__}: {page}"
        texts.append("" if isinstance(page, Exception) else page)
        length += len(texts[-1])
        if length > OUTPUT_BYTES:
            raise UnreadableError(f"holds more than {OUTPUT_BYTES >> 20} MB of text. Split it")
    if not any(texts):
        why = next(iter(unread.values()), "a scan? Recognise its text first")
        raise UnreadableError(f"no text in its {len(texts)} pages: {why}"[:300])
    return Parsed(checked_text(BETWEEN.join(texts)), _title(reader), tuple(_starts(texts)), unread_pages=tuple(unread))


def _opened(data: bytes) -> Any:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("is encrypted. Save it without its password")
    except DependencyError:
        raise UnreadableError(_NO_CIPHER) from None
    count = len(reader.pages)
    if not count:
        raise UnreadableError("has no page. Remove it, or save it anew")
    if count > PAGES:
        raise UnreadableError(f"has {count} pages, more than {PAGES}. Split it")
    return reader


def _pages(reader: Any) -> Iterator[str | Exception]:
    from pypdf.errors import DependencyError

    for number in range(len(reader.pages)):
        try:
            yield _clean(reader.pages[number].extract_text())
        except MemoryError:
            raise
        except DependencyError:  # the next pages need it, too
            raise UnreadableError(_NO_CIPHER) from None
        except Exception as error:  # pypdf raises any error at a damaged page; the other pages may be fine
            yield error


def _clean(text: str) -> str:
    # Fonts with damaged tables give lone surrogates.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "").translate(_LIGATURES).strip()


def _starts(texts: list[str]) -> Iterator[int]:
    start = 0
    for text in texts:
        yield start
        start += len(text) + len(BETWEEN)


def _title(reader: Any) -> str:
    try:
        return " ".join(str(reader.metadata.title or "").split())[:300] if reader.metadata else ""
    except Exception:  # any part of the file may be damaged
        return ""
