"""The citation measures of others: the support evaluation of TREC RAG 2024, and ALCE. Their units are our claims.

Both judge sentences. Here a claim takes the place of a sentence, as in all judged measures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from rag_harness.measures.judged.citation_support import CitationMeasure, value_of
from rag_harness.measures.judged.cited_claims import SUPPORTS_FROM, CitedClaim, SourceVerdict

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
