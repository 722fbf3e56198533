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


def verdict(answer: Answer, confidence: float, threshold: float, unknown: Sequence[str]) -> Decision:
    """Return what a service says of an answer: pass, warn or abstain, with its reason codes.

    Args:
        answer: with its citations.
        confidence: mean cosine of the best sections.
        threshold: the floor.
        unknown: what the answer cites that is not in the context.
    """
    if answer.abstained:
        return Decision("decision", "abstain", confidence, threshold, "NOT_IN_SOURCES")
    codes = ["LOW_RELEVANCE"] if confidence < threshold else []
    codes += [] if answer.citations else ["NO_CITATION"]
    codes += [f"UNKNOWN_SOURCE: {', '.join(unknown)}"] if unknown else []
    return Decision("decision", "warn" if codes else "pass", confidence, threshold, "; ".join(codes))
