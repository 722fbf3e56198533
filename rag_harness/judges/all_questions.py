"""Answers every question for every judge: what it does not say itself is asked of it in another way.

A judge that has the method ``criteria`` is asked once about all criteria. Any other judge is asked which facts the
answer states. How near an answer is to a text is no opinion: the run's embedder tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property

from rag_harness.expectations.rubrics import Criterion
from rag_harness.files.sources import json_digest
from rag_harness.judges.citations import Unmarked, unmarked_answer
from rag_harness.judges.claim_by_claim import ClaimByClaim
from rag_harness.judges.embedded.judgement_reading import JudgementReading
from rag_harness.judges.facts_stated import met_by_facts
from rag_harness.judges.llm.shared import Shared
from rag_harness.measures.judged import (
    CITATIONS,
    CitedClaim,
    Claim,
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdicts,
)
from rag_harness.measures.judged.cited_claims import cited_claims
from rag_harness.measures.judged.criteria import (
    CRITERIA,
    CriterionVerdict,
    LevelReached,
    MaterialOfCase,
    OpinionOfCriteria,
    OpinionOfLevels,
)
from rag_harness.protocols import TextEmbedder
from rag_harness.registry.revisions import REVISIONS
from rag_harness.work.local_work import on_local_thread


class AllQuestions(ClaimByClaim):
    """A judge that never sees the marks of an answer, and answers the questions ``CITATIONS`` and ``CRITERIA``, too.

    Args:
        judge: the judge.
        embedder: returns the run's embedder, for how near an answer is to a text.
        request: what the profile sets or drops of its requests, which also decides what a model says.
    """

    def __init__(self, judge: Judge, embedder: Callable[[], TextEmbedder], request: str = "") -> None:
        super().__init__(judge)
        self._embedder, self._reading = embedder, JudgementReading(embedder)
        self._request = request if self.asks_model else ""

    @cached_property
    def revision(self) -> str:
        """The judge's revision, and what its model is asked with."""
        by = f"+{json_digest(self._request)[:8]}" if self._request else ""
        return f"{super().revision}{by}"

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        said = super().opinion(material, asks)
        return _AllAnswered(said, self._judge, material, asks, self._reading) if CRITERIA in asks else said

    def identity_of(self, asks: Collection[JudgeQuestion]) -> str:
        """Return the digest of what decides the answers to ``asks`` beside the judge's revision; empty without any."""
        if CRITERIA in asks:
            embedder = self._embedder()
            return json_digest([REVISIONS["judges/criteria"], embedder.model, embedder.revision])
        return REVISIONS["judges/claim_by_claim"] if CITATIONS in asks else ""


class _AllAnswered:
    """An opinion that also says which criteria an answer meets. They are judged once."""

    def __init__(
        self,
        said: Opinion,
        judge: Judge,
        material: Material,
        asks: Collection[JudgeQuestion],
        reading: JudgementReading,
    ) -> None:
        self._said, self._judge, self._material, self._asks, self._reading = said, judge, material, asks, reading
        self._plain = unmarked_answer(material.answer, len(material.contexts))
        self._found: Shared[Sequence[CriterionVerdict]] = Shared()
        self._opinion = judge.opinion(replace(material, answer=self._plain.text), asks)

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        return await self._said.supported(claims, source)

    async def usefulness(self) -> Sequence[Usefulness]:
        return await self._said.usefulness()

    async def relevancy(self) -> Relevancy:
        return await self._said.relevancy()

    async def citations(self) -> Sequence[CitedClaim]:
        return await cited_claims(self._said)

    async def criteria(self) -> Sequence[CriterionVerdict]:
        return await self._found.get(CRITERIA, self._criteria)

    async def level(self, scale: Criterion) -> LevelReached | None:
        return await self._opinion.level(scale) if isinstance(self._opinion, OpinionOfLevels) else None

    async def nearness(self, text: str) -> float:
        """Return the cosine of ``text`` and the answer without its marks."""
        array = await on_local_thread(lambda: self._reading.cosine(text, self._plain.text))
        return float(array[0, 0])

    async def _criteria(self) -> Sequence[CriterionVerdict]:
        wanted = self._material.criteria if isinstance(self._material, MaterialOfCase) else ()
        if not isinstance(self._opinion, OpinionOfCriteria):
            material = replace(self._material, answer=self._plain.text)
            return await met_by_facts(self._judge, material, wanted, self._asks)
        return [_placed(self._plain, each) for each in await self._opinion.criteria()]


def _placed(plain: Unmarked, said: CriterionVerdict) -> CriterionVerdict:
    """Return a verdict with the place of its quote in the answer as it was given."""
    if said.start < 0:
        return said
    claim = plain.placed([Claim(said.quote, said.start, said.end)])[0]
    return replace(said, start=claim.start, end=claim.end)
