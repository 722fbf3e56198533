"""Limits on what is judged. A larger text gets no score, with a reason, and causes no call."""

from __future__ import annotations

from rag_harness.errors import ModelOutputError

LONGEST_TEXT = 40_000
"""Most characters of a text that is split into claims."""
MOST_CLAIMS = 100
"""Most claims of a text that are judged. A reply with more is not trusted."""
_SHORTEST_CLAIM = 4
"""Characters of a text that make a claim at least: an item of a list, ``UK, ``."""
_FEWEST = 3


def check_length(what: str, text: str) -> None:
    """Refuse to split a text that is too long for an answer.

    Raises:
        ModelOutputError: the text is too long; says how long it is.
    """
    if len(text) > LONGEST_TEXT:
        raise ModelOutputError(f"{what} of {len(text):,} characters: at most {LONGEST_TEXT:,} are judged")


def most_claims(text: str) -> int:
    """Return the most claims that a reply about ``text`` may have, one more than are judged: a cut list would pass."""
    return min(MOST_CLAIMS + 1, max(_FEWEST, len(text) // _SHORTEST_CLAIM))


def too_many(count: int) -> str:
    """Say that a reply has too many claims; empty where it has not."""
    return f"the judge found {count:,} claims: at most {MOST_CLAIMS} are judged" if count > MOST_CLAIMS else ""
