"""One comment on a pull request or merge request, however often and by however many jobs it is written."""

from __future__ import annotations

from collections.abc import Iterable
from re import sub
from typing import Protocol

from rag_harness.errors import PrerequisiteError

MOST_BYTES = 60_000
"""GitHub takes 65,536 characters."""


class CommentPlace(Protocol):
    """The comments on a pull request, as the account of the token may change them."""

    def own(self, first: str) -> Iterable[int]:
        """Yield the numbers of this account's comments that begin with ``first``."""
        ...

    def write(self, text: str) -> int:
        """Write a comment, and return its number."""
        ...

    def rewrite(self, number: int, text: str) -> None:
        """Replace the text of a comment."""
        ...

    def remove(self, number: int) -> None:
        """Remove a comment, if it is still there."""
        ...


def keep_comment(place: CommentPlace, name: str, text: str) -> int:
    """Write the comment called ``name``, or replace the one that is there; return its number.

    It is looked for once more after writing: of two jobs that found none, each has written one. Both keep the oldest.

    Args:
        place: where it stands.
        name: tells it from others of the same account; shown to nobody.
        text: Markdown; cut after 60,000 bytes, which is said.

    Raises:
        PrerequisiteError: the host refuses, or does not show what was written.
    """
    first = f"<!-- rag-harness: {sub('[^A-Za-z0-9_.-]', '-', name)} -->"
    body = f"{first}\n{_cut(text)}"
    there = sorted(place.own(first))
    if there:
        written = there[0]
        place.rewrite(written, body)
    else:
        written = place.write(body)
    there = sorted(place.own(first))
    if not there:
        raise PrerequisiteError(f"Comment {written} was written, and is not among the comments. Run the job again.")
    oldest, *others = there
    for each in others:
        place.remove(each)
    if oldest != written:
        place.rewrite(oldest, body)
    return oldest


def _cut(text: str) -> str:
    content = text.encode("utf-8", "replace")
    if len(content) <= MOST_BYTES:
        return text
    kept = content[:MOST_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n\nCut after {MOST_BYTES} bytes. The whole text is in the results of the run.\n"
