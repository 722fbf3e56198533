"""Contradictions between texts, found without a model: another figure, date or version in the same role, or a denial.

contradictions(texts)         between each two texts, e.g. the chunks retrieved for one question
against(answer, sources)      between an answer and its sources
"""

from __future__ import annotations

from rag_harness.words.contradictions.finding import ANSWER, Contradiction, Quote, against, contradictions

__all__ = ["ANSWER", "Contradiction", "Quote", "against", "contradictions"]
