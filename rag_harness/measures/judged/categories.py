"""Categories of answers: one name for each answer, from context precision (CP), faithfulness (F), relevancy (AR)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

CATEGORY_MEASURES = ("context_precision", "faithfulness", "answer_relevancy")
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
"""Conditions of each category on one answer's values, or on arrays of many."""
CATEGORIES: tuple[str, ...] = (
    *RULES,
    UNCLASSIFIED,
    CORRECT_ABSTENTION,
    WRONG_ABSTENTION,
    ANSWERED_UNANSWERABLE,
    UNMEASURED,
)
"""All categories, in the order of display; the study's five come first."""
FAILED_CATEGORIES = (
    "Hallucination",
    "Retrieval Failure",
    "Irrelevant",
    "Total Failure",
    WRONG_ABSTENTION,
    ANSWERED_UNANSWERABLE,
)
"""Categories of failed answers."""
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
"""Descriptions of the categories, for people."""


def kinds_shown(found: Iterable[str]) -> list[str]:
    """Return the categories to print, in their order. The study's five are always printed, even with no answer."""
    there = {*RULES, *found}
    return [kind for kind in CATEGORIES if kind in there]
