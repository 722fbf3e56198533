"""The result of parsing a file: its text and metadata, packed as bytes for the pipe and the cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from rag_harness.errors import UnreadableError
from rag_harness.types import Document

GUESSED = "guessed_charset"
"""Key in the metadata of a document: the charset it was read in, if the file does not state it."""


UNREAD_PARTS = "unread_parts"
"""Key in the metadata of a document: what of its file was not read, a line each."""
BETWEEN_PAGES = "\n\n"


def read_in(charset: str) -> str:
    """Return the note for a document that does not name its charset."""
    return f"read as {charset}, which the file does not say. Save it as UTF-8 where that is wrong"


def unread_parts(document: Document) -> list[str]:
    """Return what of the document's file was not read, a line each."""
    found = document.metadata.get(UNREAD_PARTS)
    return [str(each) for each in found] if isinstance(found, list) else []


class PassingError(UnreadableError):
    """A file could not be read this time: it took too long, or its process was lost."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text. ``pages`` are the offsets of its pages; ``hidden`` counts invisible characters.

    ``guessed`` is the charset if the file does not state it. ``unread_parts`` says what was not read, a line each.
    """

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    hidden: int = 0
    unread_pages: tuple[int, ...] = ()
    guessed: str = ""
    unread_parts: tuple[str, ...] = ()

    def document(self, file: Path, doc_id: str) -> Document:
        """Return the document. Empty values are left out of its metadata."""
        known = {
            "hidden_characters": self.hidden,
            "unread_pages": list(self.unread_pages),
            GUESSED: self.guessed,
            UNREAD_PARTS: list(self.unread_parts),
        }
        about = {key: value for key, value in known.items() if value}
        return Document(doc_id, self.text, self.title or file.stem, about, self.pages)


def joined_pages(texts: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return one text of all pages, slides or sheets, and the offset of each."""
    starts = accumulate((len(text) + len(BETWEEN_PAGES) for text in texts[:-1]), initial=0)
    return BETWEEN_PAGES.join(texts), tuple(starts)


def packed(parsed: Parsed) -> bytes:
    """Return ``parsed`` as a line of JSON and then the text. Unpacking need not parse the text."""
    about = [parsed.title, parsed.pages, parsed.hidden, parsed.unread_pages, parsed.guessed, parsed.unread_parts]
    return _line(about) + parsed.text.encode("utf-8", "surrogatepass")


def packed_fault(fault: str) -> bytes:
    """Return the packed reason why a file cannot be read. It differs from any packed result."""
    return _line(fault)


@dataclass(frozen=True, slots=True)
class Passing:
    """Why a file could not be read in ``run``. Another run may succeed.

    ``chance`` says that another process of the same run may succeed, too: the fault is not in the file.
    """

    fault: str
    run: str = ""
    chance: bool = True

    def packed(self) -> bytes:
        """Return the packed fault. It differs from any packed result."""
        return _line({"fault": self.fault, "run": self.run, "chance": self.chance})


def passing(data: bytes) -> Passing | None:
    """Return the temporary fault in ``data``, or None where it is something else."""
    return Passing(**json.loads(data)) if data.startswith(b"{") else None


def fault_in(data: bytes) -> UnreadableError | None:
    """Return the packed fault as an error, or None. It is a PassingError where another process may succeed."""
    about = json.loads(data) if data[:1] in (b'"', b"{") else None
    if isinstance(about, str):
        return UnreadableError(about)
    return (PassingError if about["chance"] else UnreadableError)(about["fault"]) if about else None


def unpacked(data: bytes) -> Parsed:
    """Return the unpacked result.

    Raises:
        UnreadableError: a fault was packed. PassingError: another process may read the file.
        ValueError: the bytes are something else.
    """
    fault = fault_in(data)
    if fault is not None:
        raise fault
    head, line_end, text = data.partition(b"\n")
    about = json.loads(head)
    if not line_end or not isinstance(about, list):
        raise ValueError("neither text nor fault")
    title, pages, hidden, unread, guessed, unread_parts = about
    whole = text.decode("utf-8", "surrogatepass")
    return Parsed(whole, str(title), tuple(pages), int(hidden), tuple(unread), str(guessed), tuple(unread_parts))


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
