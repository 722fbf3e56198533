"""Judged measures: a judge extracts claims and says which are supported; the formulas here turn that into scores.

A measure of your own is a class in a file, derived from ``JudgedMeasure``, registered under ``rag_harness.measures``.
"""

from __future__ import annotations

from rag_harness.measures.judged.categories import CATEGORIES
from rag_harness.measures.judged.cited_claims import CITATIONS, CitedClaim, OpinionOfCitations, SourceVerdict
from rag_harness.measures.judged.measure import JudgedMeasure, supported_share
from rag_harness.measures.judged.opinion import (
    Claim,
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    Relevancy,
    Support,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)

__all__ = [
    "CATEGORIES",
    "CITATIONS",
    "CitedClaim",
    "Claim",
    "ClaimedText",
    "Judge",
    "JudgeQuestion",
    "JudgedMeasure",
    "Material",
    "Opinion",
    "OpinionOfCitations",
    "Relevancy",
    "SourceVerdict",
    "Support",
    "SupportSource",
    "Usefulness",
    "Verdict",
    "Verdicts",
    "supported_share",
]
