"""How much of a text the judge reads. What lies beyond has no verdict, and says so: it is never silently wrong."""

from __future__ import annotations

from rag_harness.judges.embedded.words import Text

MOST_SENTENCES = 200
"""Sentences of a text that is judged."""
MOST_WORDS = 4_000
"""Words of a text that is judged."""
MOST_CHARACTERS = 40_000
"""Characters of a text that is judged: without blanks between words, words bound nothing."""
MOST_SOURCE_CHARACTERS = 200_000
"""Characters of all passages of a source together."""


def readable_sentences(text: Text) -> int:
    """Return how many sentences of ``text``, from its beginning, are within the limits."""
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


def too_long(characters: int) -> str:
    """Return why no sentence has a verdict."""
    return f"the source has {characters:,} characters and the embedded judge reads {MOST_SOURCE_CHARACTERS:,}"
