"""The limit of the contexts of an answer. No model reads more; and each takes memory and time in all that is measured.

More of them are an error of the trial, and none is left out: figures of a part would look like those of the whole.
"""

from __future__ import annotations

from rag_harness.errors import ModelOutputError
from rag_harness.settings import Settings
from rag_harness.settings.removed import RARE_TABLE
from rag_harness.types import PipelineOutput

MOST_CONTEXTS = 1_000
"""Most contexts by default. ``max_contexts`` changes it."""


def most_contexts(settings: Settings) -> int:
    """Return the limit of a run: what it asks for itself, as many candidates or chunks, is within it."""
    return max(settings.max_contexts, settings.candidates, settings.top_k)


def refuse_many(output: PipelineOutput, most: int, author: str) -> None:
    """Refuse an output with more contexts, retrieved hits or hits of a step than ``most``.

    Raises:
        ModelOutputError: it has more.
    """
    numbers = [len(output.context), len(output.retrieved), *(len(stage.hits) for stage in output.stages)]
    check_number(max(numbers), most, author)


def check_number(number: int, most: int, author: str) -> None:
    """Refuse ``number`` contexts where that is more than ``most``.

    Raises:
        ModelOutputError: it is.
    """
    if number > most:
        raise ModelOutputError(
            f"{author} returned {number:,} contexts, and {most:,} are taken at most. Let it return those that the "
            f"answer was made of; where they are so many: max_contexts in {RARE_TABLE}"
        )
