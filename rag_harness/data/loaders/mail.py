"""Loader for mails (eml): head, text and attachments."""

from __future__ import annotations

import email.policy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import Parsed, parser_at
from rag_harness.data.loaders.html_pages import parse as parse_html
from rag_harness.data.loaders.markdown_writer import (
    MarkdownWriter,
    add_heading,
    add_paragraph,
    deeper,
    without_marks_of_loaders,
)
from rag_harness.data.loaders.reading import parsed_file
from rag_harness.data.loaders.text import check_kind, checked_text, decoded

_SHOWN = ("From", "To", "Cc", "Date")
_HEADS = (*_SHOWN, "Subject", "Received", "Message-ID")
_DEEPEST = 5
"""Mails in mails that are read."""
_MOST_PARTS = 1_000
_ATTACHED = {
    "txt": "rag_harness.data.loaders.text:parse_text",
    "md": "rag_harness.data.loaders.text:parse_text",
    "html": "rag_harness.data.loaders.html_pages:parse",
    "htm": "rag_harness.data.loaders.html_pages:parse",
    "pdf": "rag_harness.data.loaders.pdf:parse",
    "csv": "rag_harness.data.loaders.text:parse_csv",
    "tsv": "rag_harness.data.loaders.text:parse_csv",
    "docx": "rag_harness.data.loaders.office:parse_word",
    "docm": "rag_harness.data.loaders.office:parse_word",
    "pptx": "rag_harness.data.loaders.office:parse_slides",
    "pptm": "rag_harness.data.loaders.office:parse_slides",
    "xlsx": "rag_harness.data.loaders.office:parse_sheets",
    "xlsm": "rag_harness.data.loaders.office:parse_sheets",
}
"""The module that reads an attachment, by its suffix."""


def load(file: Path, doc_id: str) -> Document:
    """Read a mail.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is not a mail.
    """
    return parsed_file("eml", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the mail as Markdown. An attachment that cannot be read is named; the rest is read."""
    check_kind(data, "a mail")
    message = _message(data)
    if not any(message[name] for name in _HEADS):
        raise UnreadableError(
            "is not a mail: it has no head with From, Date or Subject. Give it the suffix of its kind"
        )
    reading = _Reading()
    text = reading.text(message, 1)
    unread_parts = tuple(dict.fromkeys(reading.unread_parts))
    checked = checked_text(text, without_marks_of_loaders(text))
    return Parsed(checked, _head(message, "Subject")[:300], hidden=reading.hidden, unread_parts=unread_parts)


@dataclass
class _Reading:
    unread_parts: list[str] = field(default_factory=list)
    hidden: int = 0
    _parts: int = 0

    def text(self, message: EmailMessage, depth: int) -> str:
        """Return head, text and attachments of a mail."""
        out = MarkdownWriter()
        add_heading(out, 1, _head(message, "Subject") or "(no subject)")
        add_paragraph(out, *(f"{name}: {said}" for name in _SHOWN if (said := _head(message, name))))
        return "\n\n".join([out.text().strip(), *filter(None, self._inside(message, depth))]) + "\n"

    def _inside(self, part: EmailMessage, depth: int) -> Iterator[str]:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise UnreadableError(f"has more than {_MOST_PARTS:,} parts. Split it")
        kind = part.get_content_type()
        if kind == "message/rfc822":
            yield from self._mails(part, depth)
        elif part.is_multipart():
            inner = [each for each in part.iter_parts() if isinstance(each, EmailMessage)]
            for each in [_richest(inner)] if kind == "multipart/alternative" and inner else inner:
                yield from self._inside(each, depth)
        elif part.get_content_disposition() == "attachment" or part.get_filename():
            yield self._attachment(part)
        elif kind in ("text/plain", "text/html"):
            yield self._tried("its text", lambda: _body(part, kind)).strip()

    def _mails(self, part: EmailMessage, depth: int) -> Iterator[str]:
        for inner in part.iter_parts():
            if depth >= _DEEPEST:
                self.unread_parts.append(f"mails more than {_DEEPEST} deep in others")
            elif isinstance(inner, EmailMessage):
                yield deeper(self.text(inner, depth + 1), 1).strip()

    def _attachment(self, part: EmailMessage) -> str:
        name = " ".join((part.get_filename() or "without a name").split())[:200]
        suffix = PurePosixPath(name).suffix.lower().lstrip(".")
        if suffix not in _ATTACHED:
            self.unread_parts.append(f"attachment {name}: no text is read of such files")
            return ""
        parse = parser_at(_ATTACHED[suffix])
        text = self._tried(f"attachment {name}", lambda: parse(_bytes(part)))
        if not text.strip():
            return ""
        out = MarkdownWriter()
        add_heading(out, 2, f"Attachment: {name}")
        return out.text() + "\n" + deeper(text, 2).strip()

    def _tried(self, what: str, read: Callable[[], Parsed]) -> str:
        try:
            parsed = read()
        except MemoryError:
            raise
        except Exception as error:  # readers raise any error at a damaged attachment; the mail may be fine
            self.unread_parts.append(f"{what}: {error}"[:300])
            return ""
        self.hidden += parsed.hidden
        self.unread_parts += [f"{what}: {each}" for each in parsed.unread_parts]
        if parsed.unread_pages:
            self.unread_parts.append(f"{what}: pages that cannot be read: {', '.join(map(str, parsed.unread_pages))}")
        return parsed.text


def _message(data: bytes) -> EmailMessage:
    message = BytesParser(policy=email.policy.default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    return message


def _head(message: EmailMessage, name: str) -> str:
    try:
        said = str(message[name] or "")
    except Exception:  # the standard library's parser raises any error at a damaged head
        said = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join(said.split())[:2_000]


def _richest(parts: list[EmailMessage]) -> EmailMessage:
    """Return the part to read of those that say the same: HTML keeps tables and links, and its hidden text is found."""
    kinds = [each.get_content_type() for each in parts]
    found = [at for at, kind in enumerate(kinds) if kind == "text/html" or kind.startswith("multipart/")]
    return parts[found[-1] if found else kinds.index("text/plain") if "text/plain" in kinds else 0]


def _body(part: EmailMessage, kind: str) -> Parsed:
    data = _bytes(part)
    text = decoded(data, part.get_content_charset() or "").text
    if kind == "text/html":
        return parse_html(b"\xef\xbb\xbf" + text.encode("utf-8", "replace"))
    return Parsed(text.replace("\r\n", "\n"))


def _bytes(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
