"""What kind of answer it is: one name an answer, from context precision (CP), faithfulness (F), relevancy (AR)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_harness.measures.measure import Score

PARTS = ("context_precision", "faithfulness", "answer_relevancy")
CORRECT_ABSTENTION, WRONG_ABSTENTION = "Correct Abstention", "Wrong Abstention"
ANSWERED_UNANSWERABLE = "Answered Unanswerable"
UNCLASSIFIED, UNMEASURED = "Unclassified", "Unmeasured"

RULES: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "Clean Pass": lambda cp, f, ar: (cp > 0.7) & (f > 0.7) & (ar > 0.7),
    "Hallucination": lambda cp, f, _: (cp > 0.6) & (f < 0.4),
    "Retrieval Failure": lambda cp, f, _: (cp < 0.4) & (f > 0.7),
    "Irrelevant": lambda _, f, ar: (ar < 0.4) & (f > 0.7),
    "Total Failure": lambda cp, f, ar: (cp < 0.4) & (f < 0.4) & (ar < 0.4),
}
"""What holds of the values of one answer; or of many, as arrays."""
CATEGORIES: tuple[str, ...] = (
    *RULES,
    UNCLASSIFIED,
    CORRECT_ABSTENTION,
    WRONG_ABSTENTION,
    ANSWERED_UNANSWERABLE,
    UNMEASURED,
)
"""All of them, in the order in which they are shown; the study's five come first."""
MEANINGS: Mapping[str, str] = {
    "Clean Pass": "context_precision > 0.7, faithfulness > 0.7, answer_relevancy > 0.7",
    "Hallucination": "context_precision > 0.6, faithfulness < 0.4",
    "Retrieval Failure": "context_precision < 0.4, faithfulness > 0.7",
    "Irrelevant": "answer_relevancy < 0.4, faithfulness > 0.7",
    "Total Failure": "context_precision < 0.4, faithfulness < 0.4, answer_relevancy < 0.4",
    UNCLASSIFIED: "anything else",
    CORRECT_ABSTENTION: "it says that it does not know, and the documents have no answer",
    WRONG_ABSTENTION: "it says that it does not know, and the documents have an answer",
    ANSWERED_UNANSWERABLE: "it answers, and the documents have no answer",
    UNMEASURED: "one of the three has no value",
}
"""What each is, for people to read."""


def kinds_shown(found: Iterable[str]) -> list[str]:
    """Return the kinds to print, in their order: the study's five always, for none of them is a finding too."""
    there = {*RULES, *found}
    return [kind for kind in CATEGORIES if kind in there]


def category_of(scores: Mapping[str, Score], abstained: bool, answerable: bool) -> str:
    """Return the category of an answer; the first rule that holds, where two do.

    Args:
        scores: of its measures, by name.
        abstained: the answer says that it does not know.
        answerable: the documents have the answer.
    """
    if abstained:
        return WRONG_ABSTENTION if answerable else CORRECT_ABSTENTION
    if not answerable:
        # Whatever its scores are: they say how it keeps to its chunks, and no chunk has what was asked.
        return ANSWERED_UNANSWERABLE
    values = [scores[name].value for name in PARTS if name in scores]
    measured = [value for value in values if value is not None]
    if len(measured) < len(PARTS):
        return UNMEASURED
    return next((name for name, holds in RULES.items() if holds(*measured)), UNCLASSIFIED)
