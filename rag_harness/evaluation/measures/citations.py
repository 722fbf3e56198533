"""Measures of citations claim by claim, ours and those of TREC RAG 2024 and ALCE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from rag_harness.evaluation.measures.judged import JudgedMeasure, missing
from rag_harness.evaluation.measures.measure import Score
from rag_harness.evaluation.measures.opinion import (
    ABSTAINED,
    CITATIONS,
    FOUND_NOTHING,
    SUPPORTS_FROM,
    CitedClaim,
    Material,
    Opinion,
    SourceVerdict,
    cited_claims,
    word_of,
)

NO_CLAIM = "no claim in the answer"
_NEEDS_NONE, _HAS_NONE = "it needs no citation", "it has no citation"


class CitationMeasure(JudgedMeasure):
    """A measure of an answer's citations.

    Where a source that it reads has no verdict, the answer gets no score: the denominator never shrinks.
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


# The citation measures of others: the support evaluation of TREC RAG 2024, and ALCE. Their units are our claims.
#
# Both judge sentences. Here a claim takes the place of a sentence, as in all judged measures.

Entails: TypeAlias = Callable[[Collection[int]], bool]
"""Takes numbers of sources, and returns whether they entail a claim together."""


class TrecSupport(CitationMeasure):
    """Σ support by the first cited source / claims with a citation: full 1, partial ½, none 0 (TREC RAG, precision).

    0 without any citation. Thakur et al. 2025 (arXiv 2504.15205), weighted precision.
    """

    called = "citation_support_trec"

    def reads(self, claim: CitedClaim) -> Sequence[SourceVerdict]:
        return claim.cited[:1]

    def share(self, claims: Sequence[CitedClaim]) -> float:
        found = _first(claims)
        return sum(found) / len(found) if found else 0.0


class TrecCoverage(TrecSupport):
    """Σ support by the first cited source / claims: full 1, partial ½, none or uncited 0 (TREC RAG, recall).

    Thakur et al. 2025 (arXiv 2504.15205), weighted recall.
    """

    called = "citation_coverage_trec"

    def share(self, claims: Sequence[CitedClaim]) -> float:
        return sum(_first(claims)) / len(claims)


class AlceSupport(CitationMeasure):
    """Citations that are needed / citations, 0 without any (ALCE, citation precision).

    A citation is needed where its source alone entails the claim, or the other cited sources do not. Where all of them
    together do not entail the claim, none is needed. Gao et al. 2023 (arXiv 2305.14627), ``compute_autoais``.
    """

    called = "citation_support_alce"

    def share(self, claims: Sequence[CitedClaim]) -> float:
        counted = [alce_needed(_cited(claim), _known(claim), entailing(claim)) for claim in claims]
        citations = sum(count for _, count in counted)
        return sum(needed for needed, _ in counted) / citations if citations else 0.0


class AlceCoverage(CitationMeasure):
    """Claims that their citations together entail / claims, uncited ones included (ALCE, citation recall).

    Gao et al. 2023 (arXiv 2305.14627), ``compute_autoais``.
    """

    called = "citation_coverage_alce"

    def share(self, claims: Sequence[CitedClaim]) -> float:
        return sum(alce_entailed(_cited(claim), _known(claim), entailing(claim)) for claim in claims) / len(claims)


def alce_entailed(cited: Sequence[int], known: Collection[int], entails: Entails) -> bool:
    """Return whether the cited sources together entail a claim. One that does not exist spoils them all."""
    return bool(cited) and set(cited) <= set(known) and entails(cited)


def alce_needed(cited: Sequence[int], known: Collection[int], entails: Entails) -> tuple[int, int]:
    """Return how many citations of a claim are needed, and how many count.

    Where a cited source does not exist, none of the claim's citations counts.
    """
    if not set(cited) <= set(known):
        return 0, 0
    if not alce_entailed(cited, known, entails):
        return 0, len(cited)
    if len(cited) == 1:
        return 1, 1
    return sum(entails([one]) or not entails(_without(cited, one)) for one in cited), len(cited)


def entailing(claim: CitedClaim) -> Entails:
    """Return what tells whether sources entail a claim together: one of them does fully.

    A judge gives verdicts on each source alone, and on all of them together. Where no source supports the claim fully,
    and all together do, those that support it in part entail it together.
    """
    full = {each.source for each in claim.sources if _is_full(each)}
    partial = {each.source for each in claim.sources if value_of(each) == SUPPORTS_FROM}
    has_parts = bool(partial) and not full and (claim.together or 0.0) >= SUPPORTS_FROM

    def entails(sources: Collection[int]) -> bool:
        return not full.isdisjoint(sources) or (has_parts and partial <= set(sources))

    return entails


def _is_full(verdict: SourceVerdict) -> bool:
    return value_of(verdict) > SUPPORTS_FROM


def _without(cited: Sequence[int], one: int) -> list[int]:
    rest = list(cited)
    rest.remove(one)
    return rest


def _first(claims: Sequence[CitedClaim]) -> list[float]:
    return [value_of(claim.cited[0]) for claim in claims if claim.cited]


def _cited(claim: CitedClaim) -> tuple[int, ...]:
    return claim.claim.citations


def _known(claim: CitedClaim) -> list[int]:
    return [each.source for each in claim.sources]
