"""Create the judge that the settings name, able to answer every question, and compute the scores of one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.errors import BudgetError, CriticalError, NotJudgedError, RagHarnessError
from rag_harness.core.files import json_digest
from rag_harness.core.log import log
from rag_harness.core.protocols import ChatModel, JudgeParts, TextEmbedder
from rag_harness.core.registry import REVISIONS, is_own, may_be_kept, module_of, note, resolve, stated_fingerprint
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Message
from rag_harness.evaluation.expectations.rubrics import Criterion, fact_of
from rag_harness.evaluation.judges.citation_marks import CitationsOff, ClaimByClaim, Unmarked, unmarked_answer
from rag_harness.evaluation.judges.client import Shared
from rag_harness.evaluation.judges.embedded.judgement import JudgementReading, ended_in_time
from rag_harness.evaluation.judges.traits import CountedParts, PartsAround, traits
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CRITERIA,
    MEETS_FROM,
    NO_CONTEXT,
    CitedClaim,
    Claim,
    ClaimedText,
    CriterionVerdict,
    Judge,
    JudgeQuestion,
    LevelReached,
    Material,
    MaterialOfCase,
    Opinion,
    OpinionOfCriteria,
    OpinionOfLevels,
    Relevancy,
    Support,
    SupportSource,
    Usefulness,
    Verdicts,
    cited_claims,
)
from rag_harness.models.array_store import ArrayStore
from rag_harness.models.calls import asked_again
from rag_harness.models.endpoints import chat_name, judge_name
from rag_harness.records.manifest import silent_reason
from rag_harness.stats.agreement import panel_values

# Criteria that ask whether an answer states a fact. They suit a judge that only decides which statements a text
# supports.
#
# Such a judge cannot decide on other criteria, about tone or form.

NO_FACT = 'this judge tells only whether an answer states a fact: write "says that …", or name a judge with an LLM'


async def met_by_facts(
    judge: Judge, material: Material, criteria: Sequence[str], asks: Collection[JudgeQuestion]
) -> list[CriterionVerdict]:
    """Return the verdict on each criterion, by which facts the answer supports.

    Raises:
        RagHarnessError: the judge failed.
    """
    return [await _met(judge, material, each, asks) for each in criteria]


async def _met(judge: Judge, material: Material, criterion: str, asks: Collection[JudgeQuestion]) -> CriterionVerdict:
    found = fact_of(criterion)
    if found is None:
        return CriterionVerdict(criterion, None, reason=NO_FACT)
    fact, absent = found
    said = await judge.opinion(replace(material, quotes=(fact,)), asks).supported("nuggets", "answer")
    missing = next((each for each in said.each if each.value is None), None)
    if missing or not said.each:
        return CriterionVerdict(criterion, None, reason=missing.reason if missing else "the fact has no words")
    # A fact of several sentences is stated where each of them is.
    value = min(each.value for each in said.each if each.value is not None)
    why = said.each[0].reason or ("the answer says so" if value >= MEETS_FROM else "the answer does not say so")
    return CriterionVerdict(criterion, round(1 - value, 6) if absent else value, reason=why)


# Answers every question for every judge: a question that a judge does not answer itself is put in another way.
#
# A judge that has the method ``criteria`` is asked once about all criteria. Any other judge is asked which facts the
# answer states. The similarity of an answer to a text needs no judge: the run's embedder computes it.


class AllQuestions(ClaimByClaim):
    """A judge that does not get the marks of an answer, and answers the questions ``CITATIONS`` and ``CRITERIA``, too.

    Args:
        judge: the judge.
        embedder: returns the run's embedder, for how near an answer is to a text.
        request: the fields that the profile sets or drops. They also affect the replies of a model.
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
    """An opinion that also states which criteria an answer meets. They are judged once."""

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
        work = partial(self._reading.cosine, text, self._plain.text)
        array = await (ended_in_time(work, self._plain.text) if self._material.is_long else on_local_thread(work))
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


def create_judge(parts: JudgeParts, bare: Judge | None = None) -> Judge:
    """Return the judge of a run, made from its parts, or of one that is made. It does not get citation marks.

    Raises:
        RegistryError: no judge has the name in the settings.
        PrerequisiteError: it needs a package that is not installed.
    """
    return AllQuestions(bare or bare_judge(parts), parts.embedder, parts.settings.judge_request)


def bare_judge(parts: JudgeParts) -> Judge:
    """Return the judge as its factory makes it, without the wrapper of ``create_judge``.

    Raises:
        RegistryError, PrerequisiteError: as ``create_judge``.
    """
    name = judge_name(parts.settings)
    note("judge", module_of("judges", name), CitationsOff.__module__, CountedParts.__module__)
    return cast("Judge", resolve("judges", name)(CountedParts(parts)))


def scores_fingerprint(judge: Judge, settings: Settings) -> str | None:
    """Return the part of the keys of a judge's scores beside its revision; None where no score may be reused.

    Scores of a judge of a user's own, or of one that asks a model by a user's own adapter, depend on code that is not
    visible, unless the judge states a ``fingerprint``.
    """
    name = judge_name(settings)
    model, url = settings.judge_model or settings.chat_model, settings.judge_base_url or settings.chat_base_url
    asked = chat_name(replace(settings, chat_model=model, chat_base_url=url)) if traits(judge).asks_model else ""
    if asked and is_own(module_of("chat", asked)):
        return None
    return stated_fingerprint(judge) if may_be_kept(judge, module_of("judges", name)) else None


def asked_anew(parts: JudgeParts, repeat: int) -> Judge:
    """Return the same judge without earlier replies. Each repeat has a seed of its own."""
    return create_judge(_Anew(parts, repeat))


class _Anew(PartsAround):
    """The parts of a run that are asked with other seeds, and stores that are empty and keep nothing."""

    def __init__(self, parts: JudgeParts, repeat: int) -> None:
        super().__init__(parts)
        self._repeat = repeat

    @property
    def repeat(self) -> int:
        return self._repeat

    @property
    def stores(self) -> Any:
        return self

    def open(self, kind: str, model: str, revision: str) -> ArrayStore:  # noqa: ARG002 - every store is empty
        return ArrayStore([Path()])

    def flush(self) -> None:
        """Keep nothing."""

    def around(self, model: ChatModel) -> ChatModel:
        return _AskedAgain(model, self._repeat)


@dataclass(frozen=True)
class _AskedAgain:
    """A model with shifted seeds. The shift is here, not around the judging: a judge shares calls between rows."""

    inner: ChatModel
    repeat: int

    @property
    def model(self) -> str:
        return self.inner.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        with asked_again(self.repeat):
            return await self.inner.complete(messages, response_format)


# Computes the judged scores of one answer. A failure of the judge is a value: a score of None with the reason.

Scores = Mapping[str, Score]
"""Scores by the measure's name."""
_ANY = "any text"


async def judged(material: Material, measures: Sequence[JudgedMeasure], judge: Judge) -> dict[str, Score]:
    """Return the score of each measure. All measures share one opinion, and run at the same time.

    Raises:
        CriticalError: no later judgement can succeed either.
    """
    scores = {measure.name: _known(measure, material) for measure in measures}
    wanted = [measure for measure in measures if scores[measure.name] is None]
    asks = {ask for measure in wanted for ask in measure.asks}
    opinion = judge.opinion(
        material, asks if material.has_context else {ask for ask in asks if not _reads_context(ask)}
    )
    said = await asyncio.gather(*(_score(measure, material, opinion) for measure in wanted))
    found = dict(zip((measure.name for measure in wanted), said, strict=True))
    return {name: score or found[name] for name, score in scores.items()}


def _known(measure: JudgedMeasure, material: Material) -> Score | None:
    """Return the score of a measure for which no judge has to be asked; None for any other."""
    if "retrieval" not in measure.needs or material.has_context or isinstance(measure, LateMeasure):
        why = measure.undefined(material)
        return Score(None, why, undefined=True) if why else None
    # A measure of a user's own may take a missing context for a reason. Whatever else it says stays one.
    if why := measure.undefined(replace(material, contexts=(_ANY,))):
        return Score(None, why, undefined=True)
    return measure.without_context(material) if material.retrieves else Score(None, NO_CONTEXT, undefined=True)


def _reads_context(ask: JudgeQuestion) -> bool:
    return ask in ("usefulness", CITATIONS) or (isinstance(ask, Support) and ask.source == "contexts")


async def _score(measure: JudgedMeasure, material: Material, opinion: Opinion) -> Score:
    try:
        return await measure.judge(material, opinion)
    except CriticalError:
        raise
    except NotJudgedError as error:
        return Score(None, str(error))
    except BudgetError as error:
        return Score(None, f"not judged: budget: {error}")
    except Exception as error:
        log.error("%s could not be judged", measure.name, exc_info=error)
        return Score(None, _why(error))


def _why(error: Exception) -> str:
    said = str(error) or repr(error)
    return said if isinstance(error, RagHarnessError) else f"{type(error).__name__}: {said}"


# The score of a panel: one value of an answer from those of its judges, or the judge without which there is none.


def panel_score(rule: str, said: Mapping[str, Score]) -> Score:
    """Return the score of a panel from those of its judges, by the judge's label.

    Where a judge has no value the panel has none either; it is undefined only where all say that there is nothing to
    measure.
    """
    values = {name: score.value for name, score in said.items()}
    found = [[value] for value in values.values() if value is not None]
    if all(score.undefined for score in said.values()):
        return next(iter(said.values()))
    if silent := {name: said[name].reason for name, value in values.items() if value is None}:
        return Score(None, silent_reason(silent, len(said)), {"judges": values})
    return Score(float(panel_values(rule, found)[0]), "", {"judges": values})
