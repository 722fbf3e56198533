"""Citations claim by claim: does the cited source support the claim, is every claim supported, or by another source?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.measures.judged.cited_claims import (
    CITATIONS,
    SUPPORTS_FROM,
    CitedClaim,
    SourceVerdict,
    cited_claims,
    word_of,
)
from rag_harness.measures.judged.measure import JudgedMeasure, missing
from rag_harness.measures.judged.opinion import Material, Opinion
from rag_harness.measures.judged.reasons import ABSTAINED, FOUND_NOTHING
from rag_harness.measures.measure import Score

NO_CLAIM = "no claim in the answer"
_NEEDS_NONE, _HAS_NONE = "it needs no citation", "it has no citation"


class CitationMeasure(JudgedMeasure):
    """A measure of an answer's citations.

    Where a source that it reads has no verdict, there is no score: the denominator never shrinks.
    """

    asks = (CITATIONS,)
    needs = ("answer", "retrieval")

    def undefined(self, material: Material) -> str:
        """Return whether the answer claims nothing."""
        return ABSTAINED if material.abstained else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        claims = await cited_claims(opinion)
        detail = {"claims": [_detail(each) for each in claims]}
        if not claims:
            return Score(None, NO_CLAIM)
        said = [(each.value, each.reason) for claim in claims for each in self.reads(claim)]
        if why := missing(said, "sources of claims"):
            return Score(None, why, detail)
        return Score(self.share(claims), detail=detail)

    def reads(self, claim: CitedClaim) -> Sequence[SourceVerdict]:
        """Return the verdicts on which the measure depends."""
        return claim.cited

    @abstractmethod
    def share(self, claims: Sequence[CitedClaim]) -> float:
        """Return the share of an answer with claims."""


class CitationSupport(CitationMeasure):
    """Σ support / citations, over each claim and each source that it cites: full 1, partial ½, none 0 (precision).

    A citation of a source that the prompt does not have counts 0, and so does an answer that cites nothing.
    """

    called = "citation_support"

    def share(self, claims: Sequence[CitedClaim]) -> float:
        values = [value_of(each) for claim in claims for each in claim.cited]
        return sum(values) / len(values) if values else 0.0


class CitationCoverage(CitationMeasure):
    """Σ best support by a cited source / claims that need a citation: full 1, partial ½, none or uncited 0 (recall).

    1 where no claim needs a citation.
    """

    called = "citation_coverage"

    def share(self, claims: Sequence[CitedClaim]) -> float:
        values = [best(claim.cited) for claim in claims if claim.needs]
        return sum(values) / len(values) if values else 1.0


class Misattributed(CitationMeasure):
    """Claims with a citation that no cited source supports, but another source of the prompt does / claims with one.

    0 where no claim has a citation.
    """

    called = "misattributed"
    better, worst = "lower", 1.0

    def without_context(self, material: Material) -> Score:  # noqa: ARG002
        """Return 0: no other source is there."""
        return Score(0.0, FOUND_NOTHING)

    def reads(self, claim: CitedClaim) -> Sequence[SourceVerdict]:
        return claim.sources if claim.claim.citations else ()

    def share(self, claims: Sequence[CitedClaim]) -> float:
        cited = [claim for claim in claims if claim.claim.citations]
        return sum(map(is_misattributed, cited)) / len(cited) if cited else 0.0


def is_misattributed(claim: CitedClaim) -> bool:
    """Return whether no cited source supports a claim, not even in part, but another source does."""
    return bool(claim.claim.citations) and best(claim.cited) < SUPPORTS_FROM <= best(claim.others)


def value_of(verdict: SourceVerdict) -> float:
    """Return the value of a verdict; 0 where there is none, which no score is computed from."""
    return verdict.value or 0.0


def best(verdicts: Sequence[SourceVerdict]) -> float:
    """Return the highest value; 0 without a verdict."""
    return max(map(value_of, verdicts), default=0.0)


def _detail(said: CitedClaim) -> Mapping[str, Any]:
    """Return a claim as the dictionary in a score's detail.

    It has each cited source, and each other source that supports the claim.
    """
    claim, cited = said.claim, said.cited
    found: dict[str, Any] = {"text": claim.text, "value": None, "needs": said.needs, "reason": ""}
    if cited:
        found["value"] = None if any(each.value is None for each in cited) else best(cited)
    elif said.needs:
        found |= {"value": 0.0, "reason": _HAS_NONE}
    else:
        found["reason"] = _NEEDS_NONE
    if is_misattributed(said):
        found["reason"] = "another source than the cited one supports it"
    placed = {"start": claim.start, "end": claim.end} if claim.start >= 0 else {}
    shown = [*cited, *(each for each in said.others if value_of(each) >= SUPPORTS_FROM)]
    sources = [_source(each, each.source in claim.citations) for each in shown]
    return {**found, **placed, "citations": list(claim.citations), "sources": sources}


def _source(said: SourceVerdict, is_cited: bool) -> Mapping[str, Any]:
    support = None if said.value is None else word_of(said.value)
    found = {"source": said.source, "value": said.value, "support": support, "cited": is_cited}
    return found | {name: text for name, text in (("quote", said.quote), ("reason", said.reason)) if text}
