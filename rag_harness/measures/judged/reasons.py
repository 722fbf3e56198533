"""Reasons why a judged measure is undefined for a case or an answer."""

from __future__ import annotations

from rag_harness.measures.judged.opinion import Material
from rag_harness.types import Case
from rag_harness.words.citation_marks import CITATION

NOT_ANSWERABLE = "no answer in the documents"
NO_GROUND_TRUTH = "no ground truth"
NO_CONTEXT = "no context: not defined without one"
FOUND_NOTHING = "no context, so nothing is supported"
"""Why an answer of an experiment that retrieves has the worst value: its retrieval has found nothing."""
ABSTAINED = "an abstention, which claims nothing"
RIGHT_ABSTENTION = "a right abstention"

TOO_SHORT = "too short to judge without a model"
REPEATS = "it repeats the question"
NO_SUMMARY = "not judged: a summary, where counting words is as good as the embedded judge"
OTHER_LANGUAGE = "not judged: language"
"""Why judges without an LLM abstain; the last one is followed by the code of the language."""
ABSTENTIONS = (TOO_SHORT, REPEATS, NO_SUMMARY, OTHER_LANGUAGE)


def no_truth(of: Case | Material) -> str:
    """Return why there is no ground truth to compare with; empty where there is one."""
    if not of.answerable:
        return NOT_ANSWERABLE
    return "" if of.ground_truth.strip() else NO_GROUND_TRUTH


def says_nothing(material: Material) -> bool:
    """Return whether the answer is an abstention, or contains nothing but citation marks."""
    return material.abstained or not CITATION.sub("", material.answer).strip()
