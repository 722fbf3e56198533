"""What came of a file: its text and what is known of it, as bytes for the pipe and for the cache."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rag_harness.errors import UnreadableError
from rag_harness.types import Document

GUESSED = "guessed_charset"
"""In the metadata of a document: what it was read in, though nothing in the file says so."""


def read_in(charset: str) -> str:
    """Say of a document that nothing in it names its charset."""
    return f"read as {charset}, which the file does not say. Save it as UTF-8 where that is wrong"


class PassingError(UnreadableError):
    """A file could not be read this time: it took too long, or the process that read it was lost."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text. ``pages`` are offsets at which its pages begin; ``hidden`` counts characters nobody would see.

    ``guessed`` is the charset where the file does not say it.
    """

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    hidden: int = 0
    unread_pages: tuple[int, ...] = ()
    guessed: str = ""

    def document(self, file: Path, doc_id: str) -> Document:
        """Return the document; what is nothing is left out of its metadata."""
        known = {"hidden_characters": self.hidden, "unread_pages": list(self.unread_pages), GUESSED: self.guessed}
        about = {key: value for key, value in known.items() if value}
        return Document(doc_id, self.text, self.title or file.stem, about, self.pages)


def packed(parsed: Parsed) -> bytes:
    """Return ``parsed`` as a line of JSON and then the text, which need not be parsed again."""
    about = [parsed.title, list(parsed.pages), parsed.hidden, list(parsed.unread_pages), parsed.guessed]
    return _line(about) + parsed.text.encode("utf-8", "surrogatepass")


def packed_fault(fault: str) -> bytes:
    """Return why a file cannot be read, to be told apart from what was read."""
    return _line(fault)


@dataclass(frozen=True, slots=True)
class Passing:
    """Why a file could not be read in ``run``; in another it may be.

    ``chance`` says that another process of the same run may read it: whether a parser fails is in the file.
    """

    fault: str
    run: str = ""
    chance: bool = True

    def packed(self) -> bytes:
        """Return it to be told apart from what was read."""
        return _line({"fault": self.fault, "run": self.run, "chance": self.chance})


def passing(data: bytes) -> Passing | None:
    """Return the fault that was packed, None where that is something else."""
    return Passing(**json.loads(data)) if data.startswith(b"{") else None


def fault_in(data: bytes) -> UnreadableError | None:
    """Return why there is nothing, where that was packed: PassingError where another process may do better."""
    about = json.loads(data) if data[:1] in (b'"', b"{") else None
    if isinstance(about, str):
        return UnreadableError(about)
    return (PassingError if about["chance"] else UnreadableError)(about["fault"]) if about else None


def unpacked(data: bytes) -> Parsed:
    """Return what was packed.

    Raises:
        UnreadableError: a fault was packed; PassingError where another process may read the file.
        ValueError: these are bytes of something else.
    """
    fault = fault_in(data)
    if fault is not None:
        raise fault
    head, line_end, text = data.partition(b"\n")
    about = json.loads(head)
    if not line_end or not isinstance(about, list):
        raise ValueError("neither text nor fault")
    title, pages, hidden, unread, guessed = about
    return Parsed(
        text.decode("utf-8", "surrogatepass"), str(title), tuple(pages), int(hidden), tuple(unread), str(guessed)
    )


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
