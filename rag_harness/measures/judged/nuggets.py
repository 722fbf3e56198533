"""Nugget recall, as TREC counts it: the facts that an answer needs. Nuggets are the quotes of the evidence."""

from __future__ import annotations

import re
from typing import ClassVar

from rag_harness.measures.judged.measure import unusable, values, verdict_detail
from rag_harness.measures.judged.opinion import Material, Opinion, Support
from rag_harness.measures.judged.reasons import no_truth, says_nothing
from rag_harness.measures.judged.truth import AgainstGroundTruth
from rag_harness.measures.measure import Score
from rag_harness.types import Case
from rag_harness.words.comparison import content_words

_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_LIST_NUMBER = re.compile(r"\s*\d+[.)]\s")
_NO_QUOTES = "no evidence quotes"
_HAS_FROM = 0.5


class NuggetRecall(AgainstGroundTruth):
    """TREC's weighted score: (Σ vital + ½ Σ okay) / (vital + ½ okay nuggets), each Σ over those that the answer has.

    Pradeep et al. 2024 (arXiv 2411.09607). Gold does not mark which are vital; the rule ``vital`` does. Where the judge
    gives probabilities, they are summed as they are.
    """

    called = "nugget_recall"
    asks = (Support("nuggets", "answer"),)
    okay: ClassVar[float] = 0.5
    """What an okay nugget weighs; a vital one weighs 1."""

    def applies(self, case: Case) -> str:
        """Return why there is no nugget, or no ground truth that tells which are vital."""
        return no_truth(case) or ("" if any(one.quote.strip() for one in case.evidence) else _NO_QUOTES)

    def undefined(self, material: Material) -> str:
        """Return the same for an answer."""
        return no_truth(material) or ("" if any(quote.strip() for quote in material.quotes) else _NO_QUOTES)

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0)
        found = await opinion.supported("nuggets", "answer")
        needed = [vital(verdict.claim.text, material.ground_truth) for verdict in found.each]
        claims = [
            {**verdict_detail(verdict), "vital": is_vital} for verdict, is_vital in zip(found.each, needed, strict=True)
        ]
        detail = {**found.detail, "claims": claims}
        why = unusable(found, "evidence quotes")
        if why:
            return Score(None, why, detail)
        weights = [1.0 if is_vital else self.okay for is_vital in needed]
        if not sum(weights):
            return Score(None, "no vital nugget", detail, undefined=True)
        there = sum(weight * self.counts(value) for weight, value in zip(weights, values(found), strict=True))
        return Score(min(1.0, there / sum(weights)), detail=detail)

    def counts(self, value: float) -> float:
        """Return what a nugget counts whose support by the answer is ``value``, in [0, 1]."""
        return value


class StrictNuggetRecall(NuggetRecall):
    """TREC's strict score: nuggets that the answer fully has / nuggets, vital or okay; p ≥ ½ where judges estimate."""

    called = "nugget_recall_strict"
    okay = 1.0

    def counts(self, value: float) -> float:
        return float(value >= _HAS_FROM)


class VitalNuggetRecall(NuggetRecall):
    """TREC's vital score: Σ vital / vital nuggets, the Σ over those that the answer has. Okay nuggets do not count."""

    called = "nugget_recall_vital"
    okay = 0.0


class StrictVitalNuggetRecall(StrictNuggetRecall):
    """TREC's strict vital score: vital nuggets that the answer fully has / vital nuggets; p ≥ ½ where judges estimate.

    The headline of TREC RAG 2024.
    """

    called = "nugget_recall_vital_strict"
    okay = 0.0


def vital(nugget: str, ground_truth: str) -> bool:
    """Return whether the ground truth has a figure of ``nugget``, or at least half of its content words.

    A nugget that is not vital is okay: a premise of the ground truth that it does not repeat. A content word has at
    least four letters. The number of a list item is no figure.
    """
    numbered = _LIST_NUMBER.match(nugget)
    nugget = nugget[numbered.end() :] if numbered else nugget
    if _figures(nugget) & _figures(ground_truth):
        return True
    words = content_words(nugget)
    return bool(words) and 2 * len(words & content_words(ground_truth)) >= len(words)


def _figures(text: str) -> set[str]:
    return set(_FIGURE.findall(text))
