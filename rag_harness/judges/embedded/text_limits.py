"""Limits on the texts that the judge reads. Text beyond them has no verdict, with a reason."""

from __future__ import annotations

from rag_harness.judges.embedded.words import SplitText

MOST_SENTENCES = 200
"""Most sentences of a judged text."""
MOST_WORDS = 4_000
"""Most words of a judged text."""
MOST_CHARACTERS = 40_000
"""Most characters of a judged text: a text without blanks has few words of any length."""
MOST_SOURCE_CHARACTERS = 200_000
"""Most characters of all passages of a source together."""


def readable_sentences(text: SplitText) -> int:
    """Return how many sentences from the beginning of ``text`` are within the limits."""
    ends = [*text.firsts.tolist()[1:], len(text.spans)]
    within = [
        last <= MOST_WORDS and end <= MOST_CHARACTERS
        for (_, end), last in zip(text.sentences[:MOST_SENTENCES], ends, strict=False)
    ]
    return sum(within)


def beyond() -> str:
    """Return why a sentence has no verdict."""
    return (
        f"the embedded judge reads the first {MOST_SENTENCES} sentences, {MOST_WORDS:,} words and "
        f"{MOST_CHARACTERS:,} characters of a text"
    )


def too_long_to_judge(characters: int) -> str:
    """Return why no sentence has a verdict."""
    return f"the source has {characters:,} characters and the embedded judge reads {MOST_SOURCE_CHARACTERS:,}"
