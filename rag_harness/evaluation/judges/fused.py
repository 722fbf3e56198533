"""The judge ``fused``, with few, large calls in which all items of a text are judged at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from rag_harness.core.errors import ModelOutputError, RagHarnessError, RecordingMissError
from rag_harness.core.protocols import JudgeParts, Store
from rag_harness.core.settings import access_of
from rag_harness.evaluation.expectations.rubrics import Criterion
from rag_harness.evaluation.judges import questions
from rag_harness.evaluation.judges.client import (
    Missing,
    PassageVerdict,
    Shared,
    followed,
    revision_of,
)
from rag_harness.evaluation.judges.questions import (
    AskedSupport,
    AskingJudge,
    CriterionReply,
    JudgedTexts,
    PassageSupport,
    Split,
    SplitPart,
    SplitParts,
    ask_criteria,
    ask_level,
    asked_twice,
    form_first,
    in_any_order,
    split,
    too_many,
    verdict_on,
)
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    MOST_TOGETHER,
    NOTHING_TO_JUDGE_BY,
    CitedClaim,
    Claim,
    ClaimedText,
    CriterionVerdict,
    JudgeQuestion,
    LevelReached,
    Material,
    MaterialOfCase,
    Relevancy,
    SourceVerdict,
    Support,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
    passages_of,
    unjudged,
)
from rag_harness.models.array_store import key_of

# Verdicts of usefulness by (judge, prompts, question, ground truth, chunk), stored for all experiments and runs.
#
# The calls for a row depend on what was known before it. So a recording stores the verdicts themselves, also missing
# ones: then a replay asks the same, whichever row comes first.

AskAboutChunks = Callable[[Sequence[str]], Awaitable[Sequence[PassageVerdict]]]
"""Takes chunks, and returns the verdict on each."""
_MISSING = list(Missing)


class KnownUsefulness:
    """Stored verdicts on chunks.

    Args:
        store: verdicts by key: 1, 0, or -n for the nth reason of ``Missing`` in place of a verdict.
        keeps_missing: whether missing verdicts are stored too. In a recording they are the judge's reply; in a cache
            they would prevent another attempt.
    """

    def __init__(self, store: Store, keeps_missing: bool) -> None:
        self._store, self._keeps_missing = store, keeps_missing
        self._missing: dict[bytes, PassageVerdict] = {}
        self._coming: dict[bytes, asyncio.Task[Mapping[bytes, PassageVerdict]]] = {}

    async def of(
        self, question: str, ground_truth: str, chunks: Sequence[str], ask: AskAboutChunks
    ) -> list[PassageVerdict]:
        """Return the verdict on each of ``chunks``. Only chunks without a stored verdict are asked about.

        Raises:
            RagHarnessError: any error of the chat model, also where another row asked.
        """
        keys = {chunk: key_of("usefulness", question, ground_truth, chunk) for chunk in chunks}
        said = self._recalled(keys.values())
        coming = {key: self._coming[key] for key in keys.values() if key in self._coming}
        new = {key: chunk for chunk, key in keys.items() if key not in said and key not in coming}
        if new:
            said |= await asyncio.shield(self._begin(new, ask))
        for key, task in coming.items():
            said[key] = (await followed(task))[key]
        return [said[keys[chunk]] for chunk in chunks]

    def _recalled(self, keys: Collection[bytes]) -> dict[bytes, PassageVerdict]:
        stored = zip(keys, self._store.get(list(keys)), strict=True)
        found = {key: _said(float(array[0, 0])) for key, array in stored if array is not None}
        return {key: self._missing[key] for key in keys if key in self._missing} | found

    def _begin(self, new: Mapping[bytes, str], ask: AskAboutChunks) -> asyncio.Task[Mapping[bytes, PassageVerdict]]:
        task = asyncio.create_task(self._asked(new, ask))
        self._coming |= dict.fromkeys(new, task)
        task.add_done_callback(lambda done: self._arrived(new, done))
        return task

    async def _asked(self, new: Mapping[bytes, str], ask: AskAboutChunks) -> Mapping[bytes, PassageVerdict]:
        said = dict(zip(new, await ask(list(new.values())), strict=True))
        self._missing |= {key: each for key, each in said.items() if each.missing}
        kept = {key: each for key, each in said.items() if self._keeps_missing or not each.missing}
        self._store.put({key: np.array([[_number(each)]], np.float32) for key, each in kept.items()})
        return said

    def _arrived(self, keys: Iterable[bytes], task: asyncio.Task[Mapping[bytes, PassageVerdict]]) -> None:
        for key in keys:
            del self._coming[key]
        # The exception is read even where no row waits any more: asyncio would complain.
        if not task.cancelled():
            task.exception()


def _number(said: PassageVerdict) -> float:
    return -1.0 - _MISSING.index(said.missing) if said.missing else float(said.value or 0.0)


def _said(number: float) -> PassageVerdict:
    return PassageVerdict(number) if number >= 0 else PassageVerdict(missing=_MISSING[int(-number) - 1])


def cited_claim(claim: Claim, said: PassageVerdict, places: Sequence[int], count: int) -> CitedClaim:
    """Return a claim with a verdict for each of the ``count`` sources of its prompt.

    ``places`` are those of the passages that were asked about. The others have no text, and support nothing.
    """
    by = said.by if isinstance(said, PassageSupport) else None
    if by is None:
        why = said.missing.value if said.missing else "the judge did not say"
        return CitedClaim(claim, tuple(SourceVerdict(number, None, reason=why) for number in range(1, count + 1)))
    found = {places[number - 1]: each for number, each in by.items()}
    sources = (SourceVerdict(place + 1, *found.get(place, (0.0, "", ""))) for place in range(count))
    assert isinstance(said, PassageSupport)
    return CitedClaim(claim, tuple(sources), said.needs, said.value)


_FAITHFULNESS = Support("answer", "contexts")
_BY_LEVEL = "the scale was read by its levels"


class FusedOpinion:
    """The judge's opinion of one answer."""

    def __init__(self, judge: FusedJudge, material: Material, asks: Collection[JudgeQuestion]) -> None:
        self._judge, self._material, self._asks = judge, material, asks
        self._asking = judge.asking
        self._levels: Shared[dict[Criterion, LevelReached]] = Shared()

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        passages = passages_of(self._material, source)
        if not passages:
            return unjudged(claims)
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
        asked = in_any_order(left, self._material.answer, self._judge.repeat)
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
        said = await self._judge.known.of(
            material.question, material.ground_truth, material.contexts, self._asked_usefulness
        )
        return [Usefulness(each.value, _reason(each.missing)) for each in said]

    async def relevancy(self) -> Relevancy:
        found = await self._answer("questions")
        if found.questions is None:
            return Relevancy(None, reason=Missing.UNREADABLE.value)
        if not found.questions:
            return Relevancy(None, reason="no text in the answer")
        return await self._judge.nearness.relevancy(self._material.question, found.questions, found.noncommittal)

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
        """Return how to ask for support: citations share the call with faithfulness, where they are requested.

        A recording of a run with other measures may have the call in the other form.
        """
        if by_each:
            return (questions.ask_support_by_each,)
        if ask != _FAITHFULNESS:
            return (questions.ask_support,)
        both = (questions.ask_support_by_each, questions.ask_support)
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
            return await questions.ask_usefulness(self._asking, material.question, material.ground_truth, texts, again)

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


# ``fused``: a judge with few, large calls. Each text is split once, and all its numbered items are judged in one call.
#
# Cost of an answer in calls. Equal requests are sent only once in a process:
#
# ====================================================  =====================================================
# faithfulness, context precision, answer relevancy     3: A takes the answer apart (claims, and the questions that it
#                                                       would answer), B judges all claims, C all chunks, beside A.
#                                                       One more where something was left out or unreadable: 4 at
#                                                       most, 3 in a row at most
# context precision alone                               1; 0 for chunks that were judged for the same question before
# answer relevancy alone, faithfulness alone            1, 2
# each further pair of claims and source                1: factuality; claims of the answer by the ground truth; of the
#                                                       ground truth by contexts or answer; nuggets by the answer
# the ground truth, where its claims are wanted         1 for all experiments
# criteria in words, twelve together                    1; one more where something was left out
# ====================================================  =====================================================
#
# One more call is needed for each further pair with missing verdicts. An empty text needs none.


class FusedJudge(AskingJudge):
    """Asks the model of role ``judge`` with as few calls as possible. ``parts`` are those of the run."""

    name = "fused"

    def __init__(self, parts: JudgeParts) -> None:
        super().__init__(parts, shares=True)
        self.repeat: int = getattr(parts, "repeat", 0)
        """How often the judge was asked before."""

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> FusedOpinion:
        return FusedOpinion(self, material, asks)

    @cached_property
    def known(self) -> KnownUsefulness:
        """The verdicts on chunks of all rows."""
        store = self._parts.stores.open("judged", self.model, revision_of(self.name))
        return KnownUsefulness(store, keeps_missing=access_of(self._parts.settings).records)


def create(parts: JudgeParts) -> FusedJudge:
    """Return the judge of role ``judge`` that makes few calls."""
    return FusedJudge(parts)
