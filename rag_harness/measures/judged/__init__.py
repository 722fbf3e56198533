"""Judged measures: a judge extracts claims and says which are supported; the formulas here turn that into scores.

A measure of your own is a class in a file, derived from ``JudgedMeasure``, registered under ``rag_harness.measures``.
"""

from __future__ import annotations

from rag_harness.measures.judged.categories import CATEGORIES
from rag_harness.measures.judged.measure import JudgedMeasure, supported_share
from rag_harness.measures.judged.opinion import (
    Ask,
    Claim,
    Judge,
    Material,
    Opinion,
    Relevancy,
    Source,
    Support,
    Text,
    Usefulness,
    Verdict,
    Verdicts,
)

__all__ = [
    "CATEGORIES",
    "Ask",
    "Claim",
    "Judge",
    "JudgedMeasure",
    "Material",
    "Opinion",
    "Relevancy",
    "Source",
    "Support",
    "Text",
    "Usefulness",
    "Verdict",
    "Verdicts",
    "supported_share",
]
