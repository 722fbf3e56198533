"""Contradictions between texts, without a model: another figure, date or version in the same role, or a denial.

contradictions(texts)         between each two of them, what was retrieved for one question, say
against(answer, sources)      of an answer with what it is said to stand on
"""

from __future__ import annotations

from rag_harness.words.contradictions.finding import ANSWER, Contradiction, Quote, against, contradictions

__all__ = ["ANSWER", "Contradiction", "Quote", "against", "contradictions"]
