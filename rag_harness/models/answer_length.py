"""The limit of an answer's length. A longer text is no answer, and would slow down everything that reads it."""

from __future__ import annotations

from rag_harness.errors import ModelOutputError
from rag_harness.settings.removed import RARE_TABLE

LONGEST_ANSWER = 200_000
"""Most characters by default: the longest chapter of a book. ``max_answer`` changes it."""
_KEPT = 4000
"""Characters of a too long answer that a row keeps."""


def refuse_long(answer: str, longest: int, author: str) -> None:
    """Refuse an answer of more than ``longest`` characters.

    Raises:
        ModelOutputError: the answer is longer.
    """
    if isinstance(answer, str) and len(answer) > longest:  # a user's pipeline may return anything
        raise answer_too_long(author, answer, longest)


def answer_too_long(author: str, said: str, longest: int) -> ModelOutputError:
    """Return the error for a too long answer; ``said`` is the text so far."""
    return ModelOutputError(
        f"{author} answered with at least {len(said):,} characters, and {longest:,} are taken. A model that repeats "
        f"itself needs another prompt or a lower max_tokens of role answer; where answers are so long: max_answer "
        f"in {RARE_TABLE}",
        said[:_KEPT],
    )
