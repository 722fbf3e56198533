"""The front matter of a generated page: who wrote it, from which plan, and whether somebody has edited it since.

Front matter, for chunkers and questions leave it out, readers of the file see it first, and it is one with the page: a
process that is killed leaves a page with its label or none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.files.sources import text_digest

_BY = "generated_by: rag-harness kb generate,"
_LABEL = re.compile(
    rf"\A---\n{_BY} (?P<by>[^\n]+)\nplanned: (?P<planned>p\w{{16}})\nwritten: (?P<written>w\w{{16}})\n---\n\n"
)


class Label(NamedTuple):
    """Who wrote a page, the digest of what it was written from, and whether its text is still what was written."""

    by: str
    planned: str
    untouched: bool


def labelled(body: str, by: str, planned: str) -> str:
    """Return a page with its label; ``planned`` is a digest of what it was written from."""
    return f"---\n{_BY} {by}\nplanned: p{planned}\nwritten: w{text_digest(body)}\n---\n\n{body}"


def label_of(text: str) -> Label | None:
    """Return the label of a page; None where nobody but people wrote it."""
    found = _LABEL.match(_plain(text))
    if found is None:
        return None
    return Label(found["by"], found["planned"][1:], found["written"][1:] == text_digest(body_of(text)))


def body_of(text: str) -> str:
    """Return a page without its label."""
    return _LABEL.sub("", _plain(text), count=1)


def _plain(text: str) -> str:
    """Ends of lines and a byte order mark are no edit: a checkout may have changed them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
