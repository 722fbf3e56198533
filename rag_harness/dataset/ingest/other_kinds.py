"""Files that are of another kind than their names say, told by their first bytes."""

from __future__ import annotations

import re

from rag_harness.errors import UnreadableError

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of Office before 2007 begin, and encrypted ones of any age."""
ZIP = b"PK\x03\x04"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_OFFICE = (
    ("docx", re.compile(rb"wordprocessingml\.\w+\.main\+xml|ms-word\.\w+\.macroEnabled\w*\.main\+xml")),
    ("pptx", re.compile(rb"presentationml\.\w+\.main\+xml|ms-powerpoint\.\w+\.macroEnabled\w*\.main\+xml")),
    ("xlsx", re.compile(rb"spreadsheetml\.\w+\.main\+xml|ms-excel\.\w+\.macroEnabled\w*\.main\+xml")),
)


def check_kind(data: bytes, wanted: str) -> None:
    """Refuse a file that begins as another kind.

    Raises:
        UnreadableError: it does; the message names both kinds.
    """
    found = _seen_kind(data)
    if found:
        raise UnreadableError(f"is no {wanted}, but {found}. Give it the suffix of its kind")


def _seen_kind(data: bytes) -> str:
    if data.startswith(OLE):
        return "a file of Word, Excel, PowerPoint or Outlook of before 2007, or an encrypted one"
    if data.startswith(ZIP):
        return "a ZIP archive, as docx, pptx and xlsx files are"
    return "a PDF" if data.startswith(b"%PDF-") else ""


def check_encrypted(data: bytes, suffix: str) -> None:
    """Refuse an Office file that is encrypted or too old.

    Raises:
        UnreadableError: it is one.
    """
    if not data.startswith(OLE):
        return
    if _ENCRYPTED in data:
        raise UnreadableError("is encrypted. Save it without its password")
    raise UnreadableError(f"is a file of Office of before 2007, or of another kind. Save it as .{suffix}")


def office_kind(content_types: bytes) -> str:
    """Return docx, pptx or xlsx by what an Office file says about its parts; empty where it is none of them."""
    return next((suffix for suffix, pattern in _OFFICE if pattern.search(content_types)), "")
