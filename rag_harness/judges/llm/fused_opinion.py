"""The fused judge's opinion of one answer: which questions it asks, and when it may ask one again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag_harness.errors import ModelOutputError, RagHarnessError, RecordingMissError
from rag_harness.expectations.rubrics import Criterion
from rag_harness.judges.llm import judging
from rag_harness.judges.llm.cited_opinion import cited_claim
from rag_harness.judges.llm.criteria_replies import CriterionReply, ask_criteria, in_any_order, verdict_on
from rag_harness.judges.llm.judge_chat import JudgeChat
from rag_harness.judges.llm.judge_replies import Missing, PassageVerdict
from rag_harness.judges.llm.judging import AskedSupport, JudgedTexts, asked_twice
from rag_harness.judges.llm.judging_limits import too_many
from rag_harness.judges.llm.known import KnownUsefulness
from rag_harness.judges.llm.nearness import Nearness
from rag_harness.judges.llm.scale_levels import ask_level
from rag_harness.judges.llm.shared import Shared
from rag_harness.judges.llm.splitting import Split, SplitPart, SplitParts, form_first, split
from rag_harness.judges.llm.texts import NOTHING_TO_JUDGE_BY, passages_of
from rag_harness.measures.judged import (
    CITATIONS,
    CitedClaim,
    Claim,
    ClaimedText,
    JudgeQuestion,
    Material,
    Relevancy,
    Support,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
)
from rag_harness.measures.judged.criteria import MOST_TOGETHER, CriterionVerdict, LevelReached, MaterialOfCase
from rag_harness.work.once import Once

_FAITHFULNESS = Support("answer", "contexts")
_BY_LEVEL = "the scale was read by its levels"


@dataclass(frozen=True)
class Tools:
    """What all opinions of a judge share."""

    asking: JudgeChat
    known: Once[KnownUsefulness]
    nearness: Nearness
    repeat: int = 0
    """How often the judge was asked before."""


class FusedOpinion:
    """What the judge says of one answer."""

    def __init__(self, tools: Tools, material: Material, asks: Collection[JudgeQuestion]) -> None:
        self._tools, self._material, self._asks = tools, material, asks
        self._asking = tools.asking
        self._levels: Shared[dict[Criterion, LevelReached]] = Shared()

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        passages = passages_of(self._material, source)
        if not passages:
            return Verdicts((Verdict(Claim(claims), None, reason=NOTHING_TO_JUDGE_BY),))
        found, judged = await self._supported(claims, source)
        places = list(passages)
        return Verdicts(tuple(_verdict(*each, places) for each in zip(found, judged.each, strict=True)))

    async def citations(self) -> Sequence[CitedClaim]:
        """Return each claim of the answer with a verdict for each passage of the prompt; a passage unnamed is none."""
        if not passages_of(self._material, "contexts"):
            return ()
        found, judged = await self._supported(*_FAITHFULNESS, by_each=True)
        places = list(passages_of(self._material, "contexts"))
        count = len(self._material.contexts)
        return [cited_claim(*each, places, count) for each in zip(found, judged.each, strict=True)]

    async def criteria(self) -> Sequence[CriterionVerdict]:
        """Return a verdict on each criterion: a call for twelve of them, and one more where something is missing."""
        read = await self._levels.get("all", self._read_levels)
        of_scales = {text for scale in read for text in scale.asked}
        wanted = self._material.criteria if isinstance(self._material, MaterialOfCase) else ()
        left = [each for each in wanted if each not in of_scales]
        asked = in_any_order(left, self._material.answer, self._tools.repeat)
        parts = [asked[at : at + MOST_TOGETHER] for at in range(0, len(asked), MOST_TOGETHER)]
        said = {each.criterion: each for part in parts for each in await self._criteria(part)}
        return [said.get(each) or CriterionVerdict(each, None, reason=_BY_LEVEL) for each in wanted]

    async def level(self, scale: Criterion) -> LevelReached | None:
        """Return how far up a scale the answer is, from a call of its own; None where no probabilities are stated."""
        return (await self._levels.get("all", self._read_levels)).get(scale)

    async def _read_levels(self) -> dict[Criterion, LevelReached]:
        """Return the scales that probabilities tell."""
        rubrics = self._material.rubrics.values() if isinstance(self._material, MaterialOfCase) else ()
        found: dict[Criterion, LevelReached] = {}
        for scale in (each for rubric in rubrics for each in rubric.criteria if each.levels):
            level = await ask_level(self._asking, self._material.question, self._material.answer, scale)
            if level is not None:
                found[scale] = level
        return found

    async def _criteria(self, asked: Sequence[str]) -> Sequence[CriterionVerdict]:
        question, answer = self._material.question, self._material.answer

        async def ask(texts: Sequence[str], again: bool) -> Sequence[CriterionReply]:
            return await ask_criteria(self._asking, question, answer, texts, again)

        async def allowed() -> bool:
            return True

        judged = await asked_twice(asked, ask, allowed)
        return [verdict_on(*each, answer) for each in zip(asked, judged.each, strict=True)]

    async def usefulness(self) -> Sequence[Usefulness]:
        material = self._material
        if not material.ground_truth.strip():
            return [Usefulness(None, NOTHING_TO_JUDGE_BY)] * len(material.contexts)
        said = await self._tools.known.get().of(
            material.question, material.ground_truth, material.contexts, self._asked_usefulness
        )
        return [Usefulness(each.value, _reason(each.missing)) for each in said]

    async def relevancy(self) -> Relevancy:
        found = await self._answer("questions")
        if found.questions is None:
            return Relevancy(None, reason=Missing.UNREADABLE.value)
        if not found.questions:
            return Relevancy(None, reason="no text in the answer")
        return await self._tools.nearness.relevancy(self._material.question, found.questions, found.noncommittal)

    async def _supported(
        self, claims: ClaimedText, source: SupportSource, by_each: bool = False
    ) -> tuple[tuple[Claim, ...], JudgedTexts[PassageVerdict]]:
        """Return the claims with the verdict on each; ``by_each`` asks for the support of each passage, too."""
        found, may_ask_again = await self._claims(claims)
        if not found:
            return found, JudgedTexts(())
        passages, texts = list(passages_of(self._material, source).values()), [claim.text for claim in found]

        async def allowed() -> bool:
            return may_ask_again

        miss: RecordingMissError | None = None
        for way in self._ways(Support(claims, source), by_each):

            async def ask(texts: Sequence[str], again: bool, way: AskedSupport = way) -> Sequence[PassageVerdict]:
                return await way(self._asking, texts, passages, again)

            try:
                return found, await asked_twice(texts, ask, allowed)
            except RecordingMissError as error:
                miss = miss or error
        assert miss is not None
        raise miss

    def _ways(self, ask: Support, by_each: bool) -> Sequence[AskedSupport]:
        """Return how to ask for support: citations share the call with faithfulness, where they are asked for.

        A recording of a run with other measures may have the call in the other form.
        """
        if by_each:
            return (judging.support_by_each,)
        if ask != _FAITHFULNESS:
            return (judging.support,)
        both = (judging.support_by_each, judging.support)
        return both if CITATIONS in self._asks else both[::-1]

    async def _claims(self, which: ClaimedText) -> tuple[tuple[Claim, ...], bool]:
        """Return the claims of ``which``, and whether the one call that may be repeated is left."""
        if which == "nuggets":
            return tuple(Claim(quote) for quote in self._material.quotes if quote.strip()), True
        if which == "answer":
            found = await self._answer("claims")
        else:
            found = await split(self._asking, self._material.question, self._material.ground_truth, ("claims",))
        if found.claims is None:
            raise ModelOutputError(f"no claims of the {which.replace('_', ' ')}: {Missing.UNREADABLE.value}")
        if unbelievable := too_many(len(found.claims)):
            raise ModelOutputError(unbelievable)
        return found.claims, not found.again

    async def _answer(self, needed: SplitPart) -> Split:
        """Return the answer, split. A recording of a run with other measures may have the split in another form.

        Raises:
            RecordingMissError: no form of it is recorded.
        """
        miss: RecordingMissError | None = None
        for form in form_first(self._wanted, needed):
            try:
                return await split(self._asking, self._material.question, self._material.answer, form)
            except RecordingMissError as error:
                miss = miss or error
        assert miss is not None
        raise miss

    @property
    def _wanted(self) -> SplitParts:
        claims = any(ask == CITATIONS or (isinstance(ask, Support) and ask.claims == "answer") for ask in self._asks)
        found: tuple[tuple[SplitPart, bool], ...] = (("claims", claims), ("questions", "relevancy" in self._asks))
        return tuple(part for part, is_wanted in found if is_wanted)

    async def _asked_usefulness(self, chunks: Sequence[str]) -> Sequence[PassageVerdict]:
        material = self._material

        async def ask(texts: Sequence[str], again: bool) -> Sequence[PassageVerdict]:
            return await judging.usefulness(self._asking, material.question, material.ground_truth, texts, again)

        return (await asked_twice(chunks, ask, self._has_a_call_left)).each

    async def _has_a_call_left(self) -> bool:
        """Return whether no other question about this answer was asked again.

        The replies decide this, not the order of calls, so that a replay asks the same.
        """
        if not self._wanted:
            return True
        try:
            if (await self._answer(self._wanted[0])).again:
                return False
            if not {_FAITHFULNESS, CITATIONS} & set(self._asks):
                return True
            return not (await self._supported(*_FAITHFULNESS, by_each=CITATIONS in self._asks))[1].again
        except RagHarnessError:
            return False


def _verdict(claim: Claim, said: PassageVerdict, places: Sequence[int]) -> Verdict:
    why = _reason(said.missing) if said.value is None else ""
    return Verdict(claim, said.value, places[said.passage - 1] if said.passage else None, why)


def _reason(missing: Missing | None) -> str:
    return missing.value if missing else ""
