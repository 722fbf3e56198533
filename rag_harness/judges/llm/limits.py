"""What is too much to be judged: it gives no score, with the reason, and costs nothing."""

from __future__ import annotations

from rag_harness.errors import ModelOutputError

LONGEST_TEXT = 40_000
"""Characters of a text that is taken apart; what is longer is not paid for."""
MOST_CLAIMS = 100
"""Claims of a text that are judged; a reply with more is not believed."""


def check_length(what: str, text: str) -> None:
    """Refuse to take apart what is too long to be an answer.

    Raises:
        ModelOutputError: it is; says how long it is.
    """
    if len(text) > LONGEST_TEXT:
        raise ModelOutputError(f"{what} of {len(text):,} characters: at most {LONGEST_TEXT:,} are judged")


def too_many(count: int) -> str:
    """Say that a reply has more claims than are believed; empty where it has not."""
    return f"the judge found {count:,} claims: at most {MOST_CLAIMS} are judged" if count > MOST_CLAIMS else ""
