"""The error that a client is told, problem+json (RFC 9457), and the check of names for invisible characters."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

"""Error numbers of the system for a full disk."""
_MOST_CHARACTERS = 200
_PHRASES = {each.value: each.phrase for each in HTTPStatus}


@dataclass
class ProblemError(Exception):
    """A request that is not answered as asked.

    Attributes:
        status: the HTTP status.
        code: one word for programs, e.g. ``quota_used_up``.
        detail: what was asked, what was found, what to do; no name of another tenant, no path of the server.
        headers: headers of the answer, e.g. Retry-After.
        extra: further members of the body.
    """

    status: int
    code: str
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the members of the answer."""
        return {
            "type": "about:blank",
            "title": _PHRASES.get(self.status, "Error"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.extra,
        }


def no_room() -> ProblemError:
    """Return the problem of a document that does not fit on the disk."""
    return ProblemError(507, "no_room", "The server has no room left for documents. Nothing was changed.")


def shortened(text: str) -> str:
    """Return the beginning of a text that was sent. Half a character in it must not break the answer."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


# Finds invisible characters. A name with such characters looks like another name, or is empty to the eye.

_FORGES = ("Cc", "Cs", "Zl", "Zp")
"""Categories of characters: control, surrogate, line separator, paragraph separator."""
_JOINS = "\u200c\u200d\ufe0e\ufe0f"
"""Persian words and emoji need these after a character outside ASCII. After a Latin letter they are not needed."""
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
"""Letters, marks and signs without a picture (Unicode's Default_Ignorable_Code_Point, and Braille without a dot)."""


def unseen_fault(name: str) -> str:
    """Return what is invisible in ``name``; empty if nothing is."""
    if not any(_is_seen(each) for each in name):
        return "is empty" if not name else "has nothing that can be seen"
    for before, each in zip(" " + name, name, strict=False):
        if unicodedata.category(each) in _FORGES:
            return "has control characters"
        if not (_is_seen(each) or unicodedata.category(each) == "Zs" or (each in _JOINS and before > "\x7f")):
            return f"has U+{ord(each):04X}, which cannot be seen or turns text around"
    return ""


def _is_seen(each: str) -> bool:
    """Whether a character has a picture. Formats (zero-width, turning, tags), selectors and blanks have none."""
    if each.isascii():
        return "!" <= each <= "~"
    is_selector = "\ufe00" <= each <= "\ufe0f" or "\U000e0100" <= each <= "\U000e01ef"
    return not (unicodedata.category(each) in ("Cf", "Zs", *_FORGES) or each in _BLANK or is_selector)
