"""The assistant's own replies: it found nothing, or an answer should be checked."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.types import Answer, Decision

TITLES = 3
"""How many sections are suggested."""
NOTHING_FOUND = "I couldn't find relevant content."
CHECK = "Please check this in the book"


def nothing_found(titles: Sequence[str]) -> Answer:
    """Return the reply when no section is close enough. It counts as abstaining."""
    related = f" Related topics: {'; '.join(titles)}." if titles else ""
    return Answer(text=f"{NOTHING_FOUND}{related}", abstained=True)


def disclaimer(answer: Answer, confidence: float, threshold: float, titles: Sequence[str]) -> tuple[str, Decision]:
    """Return the text below an answer, and the decision; the text is empty if none is needed."""
    low = confidence < threshold
    reasons = ["the sections found match the question only loosely"] if low else []
    reasons += [] if answer.citations else ["the answer names no section"]
    if answer.abstained:
        return "", _decided("none", confidence, threshold, "the answer says that it does not know")
    if not reasons:
        return "", _decided("none", confidence, threshold, "")
    also = f" See also: {'; '.join(titles)}." if low and titles else ""
    said = " and ".join(reasons)
    return f"{CHECK}: {said}.{also}", _decided("added", confidence, threshold, said)


def _decided(outcome: str, confidence: float, threshold: float, reason: str) -> Decision:
    return Decision("disclaimer", outcome, confidence, threshold, reason)
