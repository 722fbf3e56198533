"""The judge of a run: it answers every question about an answer, without citation marks and in its conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import JudgeParts
from rag_harness.core.registry import REVISIONS
from rag_harness.evaluation.expectations.rubrics import Criterion, fact_of
from rag_harness.evaluation.judges.citation_marks import cited_by_each, placed_cited, unmarked_answer
from rag_harness.evaluation.judges.client import JudgeChat, Missing, Shared, asking_of, prompt
from rag_harness.evaluation.judges.conversations import (
    OWN_WORDS,
    WRITING_PROMPT,
    TurnRules,
    asked_so_far,
    in_conversation,
    written_out,
)
from rag_harness.evaluation.judges.embedded.judgement import JudgementReading, ended_in_time
from rag_harness.evaluation.judges.traits import CountedParts, traits
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CRITERIA,
    MEETS_FROM,
    CitedClaim,
    ClaimedText,
    CriterionVerdict,
    Judge,
    JudgeQuestion,
    LevelReached,
    Material,
    MaterialOfCase,
    MaterialOfTurn,
    OpinionOfCitations,
    OpinionOfCriteria,
    OpinionOfLevels,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdicts,
    is_of_turns,
)


class RunJudge:
    """A judge of a run, around one that an entry point makes.

    The inner judge does not get the marks of an answer. It gets the messages before it. A question that it does not
    answer itself is put in another way: citations are asked of each source, criteria of the facts that an answer
    states, and rules answer what is asked about turns.

    Args:
        judge: the judge that the entry point makes.
        parts: parts of the run: the embedder, for how near an answer is to a text, and the chat model that writes out
            the question of a turn.
    """

    def __init__(self, judge: Judge, parts: JudgeParts) -> None:
        self.inner, self.name, self._parts = judge, judge.name, parts
        said = traits(judge)
        self.asks_model, self.deterministic = bool(said.asks_model), said.deterministic
        self.reads_conversation = said.reads_conversation
        self.reading = JudgementReading(parts.embedder)

    @property
    def model(self) -> str:
        return self.inner.model

    @cached_property
    def chat(self) -> JudgeChat:
        """The access to its chat model; a judge that asks none has none."""
        return asking_of(CountedParts(self._parts), shares=True)

    @cached_property
    def revision(self) -> str:
        """The inner judge's revision, the revision of the rules for marks, and what else its model is asked with."""
        request = self._parts.settings.judge_request if self.asks_model else ""
        by = f"+{json_digest(request)[:8]}" if request else ""
        return f"{self.inner.revision}+{REVISIONS['judges/citations'][:8]}{by}"

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> RunOpinion:
        return RunOpinion(self, material, asks)

    def identity_of(self, asks: Collection[JudgeQuestion]) -> str:
        """Return the digest of what decides the answers to ``asks`` beside the judge's revision; empty without any."""
        if CRITERIA in asks:
            embedder = self._parts.embedder()
            return json_digest([REVISIONS["judges/criteria"], embedder.model, embedder.revision])
        return REVISIONS["judges/claim_by_claim"] if CITATIONS in asks else ""

    def identity_of_turns(self) -> str:
        """Return the digest of the settings that decide which part of a conversation is shown."""
        return json_digest([prompt(WRITING_PROMPT), REVISIONS["judges/turns"]])


class RunOpinion:
    """The opinion of one answer, with a method for each question. Citations and criteria are judged once.

    Verdicts have their places in the answer as it was given.
    """

    def __init__(self, judge: RunJudge, given: Material, asks: Collection[JudgeQuestion]) -> None:
        self._judge, self._given, self._asked = judge, given, asks
        self._turn = given if isinstance(given, MaterialOfTurn) and given.said else None
        writes_out = self._turn is not None and judge.reads_conversation and judge.asks_model
        self._asks = [ask for ask in asks if ask != "relevancy"] if writes_out else asks
        # A judge that compares words would lose the question among what was said before.
        question = in_conversation(self._turn) if self._turn and judge.reads_conversation else given.question
        self._plain = unmarked_answer(given.answer, len(given.contexts))
        self._material = replace(given, question=question, answer=self._plain.text)
        self._inner = judge.inner.opinion(self._material, self._asks)
        self._rules = TurnRules(given, self._supported_by) if isinstance(given, MaterialOfTurn) else None
        self._once: Shared[Any] = Shared()

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        said = await self._inner.supported(claims, source)
        return self._plain.placed_verdicts(said) if claims == "answer" else said

    async def usefulness(self) -> Sequence[Usefulness]:
        return await self._inner.usefulness()

    async def relevancy(self) -> Relevancy:
        if self._turn is None:
            return await self._inner.relevancy()
        if not self._judge.reads_conversation:
            return await self._weighed(self._turn)
        if not self._judge.asks_model:
            return await self._inner.relevancy()
        return await self._to_the_question_written_out(self._turn)

    async def citations(self) -> Sequence[CitedClaim]:
        found: Sequence[CitedClaim] = await self._once.get(CITATIONS, self._cited)
        return found

    async def criteria(self) -> Sequence[CriterionVerdict]:
        found: Sequence[CriterionVerdict] = await self._once.get(CRITERIA, self._met)
        return found

    async def level(self, scale: Criterion) -> LevelReached | None:
        return await self._inner.level(scale) if isinstance(self._inner, OpinionOfLevels) else None

    async def nearness(self, text: str) -> float:
        """Return the cosine of ``text`` and the answer without its marks."""
        work = partial(self._judge.reading.cosine, text, self._plain.text)
        array = await (ended_in_time(work, self._plain.text) if self._given.is_long else on_local_thread(work))
        return float(array[0, 0])

    async def _weighed(self, turn: MaterialOfTurn) -> Relevancy:
        """Return the mean relevancy of an answer to the present question and to all questions so far."""
        first, second = await self._relevancy_to(turn.question), await self._relevancy_to(asked_so_far(turn))
        if first.value is None or second.value is None:
            return first if first.value is None else second
        value = OWN_WORDS * first.value + (1 - OWN_WORDS) * second.value
        both = {"asked_now": first.value, "asked_so_far": second.value}
        return replace(first, value=value, detail={**first.detail, **both})

    async def _to_the_question_written_out(self, turn: MaterialOfTurn) -> Relevancy:
        question = await written_out(self._judge.chat, turn)
        if not question:
            return Relevancy(None, reason=f"the question in its conversation: {Missing.UNREADABLE.value}")
        found = await self._relevancy_to(question)
        return replace(found, detail={**found.detail, "question": question})

    async def _relevancy_to(self, question: str) -> Relevancy:
        material = replace(self._given, question=question, answer=self._plain.text)
        return await self._judge.inner.opinion(material, ["relevancy"]).relevancy()

    async def _cited(self) -> Sequence[CitedClaim]:
        if isinstance(self._inner, OpinionOfCitations):
            return placed_cited(self._plain, await self._inner.citations())
        return placed_cited(self._plain, await cited_by_each(self._judge.inner, self._material, self._asks))

    async def _met(self) -> Sequence[CriterionVerdict]:
        # Calls that were paid for stay, also where the rules fail.
        said: Sequence[CriterionVerdict] = await self._once.get("stated", self._stated)
        return [await self._by_rules(each) for each in said]

    async def _stated(self) -> Sequence[CriterionVerdict]:
        """Return what the judge says of the criteria, or the facts that it finds."""
        if isinstance(self._inner, OpinionOfCriteria):
            return [self._plain.placed_criterion(each) for each in await self._inner.criteria()]
        wanted = self._material.criteria if isinstance(self._material, MaterialOfCase) else ()
        return await met_by_facts(self._judge.inner, self._material, wanted, self._asks)

    async def _by_rules(self, said: CriterionVerdict) -> CriterionVerdict:
        """Return the verdict of the rules, where a judge decides only on facts and is asked about a turn."""
        is_open = self._rules is not None and said.reason == NO_FACT and is_of_turns(said.criterion)
        return await self._rules.verdict(said.criterion) if self._rules and is_open else said

    async def _supported_by(self, material: Material, claims: ClaimedText, source: SupportSource) -> Verdicts:
        """Return what ``supported`` does, of other material and without the messages before it."""
        plain = unmarked_answer(material.answer, len(material.contexts))
        inner = self._judge.inner.opinion(replace(material, answer=plain.text), self._asked)
        said = await inner.supported(claims, source)
        return plain.placed_verdicts(said) if claims == "answer" else said


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
    return [await _met_by_fact(judge, material, each, asks) for each in criteria]


async def _met_by_fact(
    judge: Judge, material: Material, criterion: str, asks: Collection[JudgeQuestion]
) -> CriterionVerdict:
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
