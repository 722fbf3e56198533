"""How long an answer may be: what is longer is no answer, and everything that reads it would be slow."""

from __future__ import annotations

from rag_harness.errors import ModelOutputError

LONGEST_ANSWER = 200_000
"""Characters, where nothing else is said: a book's longest chapter. ``--rag-max-answer`` says something else."""
_KEPT = 4000
"""Characters of such an answer that a row keeps."""


def refuse_long(answer: str, longest: int, author: str) -> None:
    """Let an answer of ``longest`` characters through.

    Raises:
        ModelOutputError: it has more.
    """
    if isinstance(answer, str) and len(answer) > longest:  # a pipeline of somebody's own may say anything
        raise too_long(author, answer, longest)


def too_long(author: str, said: str, longest: int) -> ModelOutputError:
    """Return the error that says so; ``said`` is what had come."""
    return ModelOutputError(
        f"{author} answered with at least {len(said):,} characters, and {longest:,} are taken. A model that repeats "
        f"itself needs another prompt or a lower --rag-max-output-tokens; where answers are so long: --rag-max-answer",
        said[:_KEPT],
    )
