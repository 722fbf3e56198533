"""The label of a generated page: its writer, its plan, and whether a person has edited it since.

The label is front matter. Chunkers and questions leave it out, and readers of the file see it first. It is in the same
file as the page, so a killed process cannot leave one without the other.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.files.sources import text_digest

_BY = "generated_by: rag-harness kb generate,"
_LABEL = re.compile(
    rf"\A---\n{_BY} (?P<by>[^\n]+)\nplanned: (?P<planned>p\w{{16}})\nwritten: (?P<written>w\w{{16}})\n---\n\n"
)


class PageLabel(NamedTuple):
    """The writer of a page, the digest of its material, and whether its text is unchanged."""

    by: str
    planned: str
    untouched: bool


def labelled(body: str, by: str, planned: str) -> str:
    """Return a page with its label; ``planned`` is the digest of its material."""
    return f"---\n{_BY} {by}\nplanned: p{planned}\nwritten: w{text_digest(body)}\n---\n\n{body}"


def label_of(text: str) -> PageLabel | None:
    """Return the label of a page; None if it was not generated."""
    found = _LABEL.match(_plain(text))
    if found is None:
        return None
    return PageLabel(found["by"], found["planned"][1:], found["written"][1:] == text_digest(body_of(text)))


def body_of(text: str) -> str:
    """Return a page without its label."""
    return _LABEL.sub("", _plain(text), count=1)


def _plain(text: str) -> str:
    """Return a text without differences that a checkout may make: line ends and a byte order mark are no edit."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
