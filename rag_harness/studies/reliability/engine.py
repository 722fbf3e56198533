"""The pipeline of the reliability engine: all steps in their order, with every decision noted in the row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag_harness.judges.calibration.told import FROM_ANSWER
from rag_harness.measures.judged import Judge
from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.settings.reliability_numbers import Thresholds
from rag_harness.studies.reliability import deciding, gate, replies
from rag_harness.studies.reliability.asking_again import SecondAsking
from rag_harness.studies.reliability.confidence import Confidence
from rag_harness.studies.reliability.contradicting import ContradictionModel
from rag_harness.studies.reliability.fallback import Fallback
from rag_harness.studies.reliability.quality import Signals
from rag_harness.studies.reliability.searching import Searcher, SearchResult
from rag_harness.studies.reliability.understanding import understood
from rag_harness.studies.reliability.verification import Checked, conflicts, grounded
from rag_harness.studies.retail.planning import planned
from rag_harness.types import Answer, Decision, PipelineOutput, Query

UNVERIFIED = tuple((name, "not verified") for name in FROM_ANSWER)
DECLINED = tuple((name, "nothing was answered") for name in FROM_ANSWER)


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps the engine has; an ablation lacks one of them."""

    decompose: bool = True
    gate: bool = True
    verify: bool = True


@dataclass(frozen=True)
class Reliable:
    """Runs the steps: understand, decompose, search, rate, gate, generate, verify, state confidence, decide.

    Args:
        searcher: finds sources and rates them.
        fallback: searches again with other words.
        generator: answers from the sources.
        again: gives the second answer.
        judge: judges groundedness.
        contradictions: asks a model which sources contradict each other.
        rewriter: decomposes questions; None if rules do it.
        confidence: computes the confidence.
        thresholds: the limits of all decisions.
        candidates: number of hits of a search.
        steps: the steps that it has.
    """

    searcher: Searcher
    fallback: Fallback
    generator: Generator
    again: SecondAsking
    judge: Judge
    contradictions: ContradictionModel
    rewriter: ChatModel | None
    confidence: Confidence
    thresholds: Thresholds
    candidates: int
    steps: Steps

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        with trace.stage("understand"):
            asked = understood(query.text)
        trace.decisions += asked.decisions()
        if asked.is_talk:
            trace.decisions.append(Decision("decision", "pass", reason="CHIT_CHAT"))
            return trace.output(replies.talk())
        found = await self._searched(query.text, trace)
        if self._stops(found, trace):
            answer, checked = replies.too_little(), Checked(reasons=DECLINED)
        else:
            answer = (await self.generator.answer(query, trace)).answer
            checked = await self._checked(query, answer, trace)
        trace.decisions += checked.decisions()
        return self._decided(answer, found, checked, trace)

    async def _searched(self, question: str, trace: Trace) -> SearchResult:
        searches = await planned(question, self.rewriter, trace) if self.steps.decompose else [question]
        best, tried = await self.searcher.search(question, searches, self.candidates, trace), 0
        while self.steps.gate and gate.way(best.quality, self.thresholds, tried) == "fallback":
            tried += 1
            best = await self.fallback.better(question, best, self.candidates, tried, trace)
        trace.retrieved, trace.context = list(best.retrieved), list(best.context)
        trace.note("quality", **{name: asdict(raw) for name, raw in best.raw.items()})
        trace.decisions += [*best.signals.decisions(), Decision("retrieval quality", "", best.quality)]
        if self.steps.gate:
            trace.decisions.append(gate.decision(best.quality, self.thresholds, tried))
        return best

    def _stops(self, found: SearchResult, trace: Trace) -> bool:
        stops = self.steps.gate and found.quality < self.thresholds.fallback
        if stops:
            # There was no prompt, so there is no context. The sources that were found stay among the candidates.
            trace.context = []
        return stops

    async def _checked(self, query: Query, answer: Answer, trace: Trace) -> Checked:
        """Run the three checks at the same time."""
        if answer.abstained or not self.steps.verify:
            return Checked(reasons=DECLINED if answer.abstained else UNVERIFIED)
        checks = (
            asyncio.ensure_future(grounded(self.judge, query.text, answer, trace.context, trace)),
            asyncio.ensure_future(self._contradictions(answer, trace)),
            asyncio.ensure_future(self.again.agreement(query, answer, trace)),
        )
        try:
            said, conflicting, (agreed, why) = await asyncio.gather(*checks)
        except BaseException:
            await _ended(checks)
            raise
        trace.note("contradict", found=list(conflicting.differences))
        reasons = (*conflicting.reasons, ("groundedness", said.reason), ("self_consistency", why))
        return replace(
            conflicting, groundedness=said.share, self_consistency=agreed, unsupported=said.claims, reasons=reasons
        )

    async def _contradictions(self, answer: Answer, trace: Trace) -> Checked:
        context = tuple(trace.context)
        told = await self.contradictions.asked(context, trace)
        return await trace.beside("contradict", conflicts, answer, context, told)

    def _decided(self, answer: Answer, found: SearchResult, checked: Checked, trace: Trace) -> PipelineOutput:
        with trace.stage("confidence"):
            stated = self.confidence.stated(found.quality, found.signals, checked, bool(answer.abstained))
        trace.note("confidence", made_of=dict(self.confidence.made_of()))
        codes = self._codes(answer, found.signals, checked, trace.context)
        outcome = deciding.outcome(stated.value, answer, codes, self.thresholds)
        limit = self._limit(answer, outcome)
        trace.decisions += [*stated.decisions, Decision("decision", outcome, stated.value, limit, "; ".join(codes))]
        kept = self._withheld(answer, trace) if outcome == "abstain" and not answer.abstained else answer
        return trace.output(kept, stated.value)

    def _limit(self, answer: Answer, outcome: deciding.Outcome) -> float | None:
        """Return the threshold for the confidence of this outcome; None if the model itself has declined."""
        if answer.abstained:
            return None
        return self.thresholds.warned if outcome == "abstain" else self.thresholds.passed

    def _codes(self, answer: Answer, found: Signals, checked: Checked, context: Sequence[object]) -> list[str]:
        if not context:
            return ["LOW_RETRIEVAL_QUALITY", *deciding.of_retrieval(found, self.thresholds)]
        return deciding.codes_of(answer, found, checked, self.thresholds)

    def _withheld(self, answer: Answer, trace: Trace) -> Answer:
        """Return the reply in place of an answer with too little confidence. The row keeps the answer."""
        with trace.stage("decide"):
            trace.note("decide", withheld=answer.text, withheld_citations=list(answer.citations))
        return replies.not_sure(answer)


async def _ended(checks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the checks and wait until they have ended, so that no call goes on unnoticed."""
    for check in checks:
        check.cancel()
    await asyncio.gather(*checks, return_exceptions=True)
