"""Answers the question ``CITATIONS`` for every judge: which sources support each claim, beside what the answer cites.

This stands outside of ``CitationsOff``, whose text names the shipped calibrations. A judge that has the method
``citations`` is asked once. Any other judge is asked about each source by itself, as if the prompt had no other: the
embedded judge, judges of the project. Such a judge says neither which claims need a citation nor what several sources
support together, and its quote is the sentence of the source that has most words of the claim.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rag_harness.errors import ModelOutputError
from rag_harness.judges.citations import CitationsOff, Unmarked, unmarked_answer
from rag_harness.judges.llm.shared import Shared
from rag_harness.judges.placed_claims import Sentences, placed_claims
from rag_harness.measures.judged import (
    CITATIONS,
    CitedClaim,
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    OpinionOfCitations,
    Relevancy,
    SourceVerdict,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)
from rag_harness.measures.judged.cited_claims import SUPPORTS_FROM


class ClaimByClaim(CitationsOff):
    """A judge that never sees the marks of an answer, and says which sources support its claims."""

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        said = super().opinion(material, asks)
        return _WithCitations(said, self._judge, material, asks) if CITATIONS in asks else said


class _WithCitations:
    """An opinion that also says which sources support each claim. Citations are worked out once."""

    def __init__(self, said: Opinion, judge: Judge, material: Material, asks: Collection[JudgeQuestion]) -> None:
        self._said, self._judge, self._material, self._asks = said, judge, material, asks
        self._found: Shared[Sequence[CitedClaim]] = Shared()

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        return await self._said.supported(claims, source)

    async def usefulness(self) -> Sequence[Usefulness]:
        return await self._said.usefulness()

    async def relevancy(self) -> Relevancy:
        return await self._said.relevancy()

    async def citations(self) -> Sequence[CitedClaim]:
        return await self._found.get(CITATIONS, self._citations)

    async def _citations(self) -> Sequence[CitedClaim]:
        plain = unmarked_answer(self._material.answer, len(self._material.contexts))
        material = replace(self._material, answer=plain.text)
        opinion = self._judge.opinion(material, self._asks)
        if isinstance(opinion, OpinionOfCitations):
            return _placed(plain, await opinion.citations())
        return _placed(plain, await self._by_each(material))

    async def _by_each(self, material: Material) -> Sequence[CitedClaim]:
        """Ask about each source by itself. A source without text supports nothing, and is not asked about."""
        asked = [(number, text) for number, text in enumerate(material.contexts, 1) if text.strip()]
        said = [await self._judge_by(replace(material, contexts=(text,))) for _, text in asked]
        claims = [verdict.claim for verdict in said[0].each] if said else []
        if any([verdict.claim for verdict in each.each] != claims for each in said):
            raise ModelOutputError("the judge found other claims in the answer when it was given another source")
        columns = {number: each.each for (number, _), each in zip(asked, said, strict=True)}
        sources = [Sentences(text) for text in material.contexts]
        return [
            CitedClaim(
                claim,
                tuple(
                    _verdict(number, source, columns[number][place])
                    if number in columns
                    else SourceVerdict(number, 0.0)
                    for number, source in enumerate(sources, 1)
                ),
            )
            for place, claim in enumerate(claims)
        ]

    async def _judge_by(self, material: Material) -> Verdicts:
        return await self._judge.opinion(material, self._asks).supported("answer", "contexts")


def _placed(plain: Unmarked, claims: Sequence[CitedClaim]) -> Sequence[CitedClaim]:
    """Return claims with their places in the answer as it was given, and the sources that it cites for each."""
    placed = placed_claims(plain, [each.claim for each in claims])
    return [replace(each, claim=claim) for each, claim in zip(claims, placed, strict=True)]


def _verdict(number: int, source: Sentences, said: Verdict) -> SourceVerdict:
    if said.value is None or said.value < SUPPORTS_FROM:
        return SourceVerdict(number, said.value, reason=said.reason)
    return SourceVerdict(number, said.value, source.nearest(said.claim.text), said.reason)
