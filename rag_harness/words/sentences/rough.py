"""Sentences by their marks alone, of text that is looked through for what is near another text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BORDER = re.compile(r"(?<=[.!?])\s+|\n+")
_MARKED = re.compile(r"[^\s.!?][^.!?]*[.!?]*")


def rough_sentences(text: str) -> list[str]:
    """Split a text behind marks with blank space, and at the ends of lines; a piece may be empty."""
    return _BORDER.split(text)


def marked_sentences(text: str) -> Iterator[re.Match[str]]:
    """Yield what stands up to each mark, wherever that is: "1.5 %" are two. For the judge that tries the plumbing."""
    return _MARKED.finditer(text)
