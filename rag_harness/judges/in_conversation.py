"""Lets every judge see an answer in its conversation. Answers to questions that stand alone are judged as ever.

What a judge is given in place of the question, where something was said before:

- A judge with a chat model gets what was said before, and below it the question.
- Relevancy compares questions as vectors, and what was said before would drown the question. A judge with a chat model
  first writes the question out, so that it can be understood alone. It does not see the answer: else it would read the
  question as the answer has read it. One call a turn, whatever number of answers there are to it.
- A judge that compares words and vectors gets the turn's own words. Its relevancy is the mean of two, four parts to
  one: of the answer to the turn's own words, and to all that the user has asked so far. So it counts most what is asked
  now, and a little what the conversation is about. docs/dev/results/conversations.md has what this was chosen by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from rag_harness.errors import NotJudgedError
from rag_harness.expectations.rubrics import Criterion
from rag_harness.files.sources import json_digest
from rag_harness.judges.facts_stated import NO_FACT
from rag_harness.judges.llm.judge_chat import JudgeChat, asking_of, prompt
from rag_harness.judges.llm.judge_replies import Missing, words_of
from rag_harness.judges.llm.schemas import TEXT
from rag_harness.judges.llm.shared import Shared
from rag_harness.judges.spent import CountedParts
from rag_harness.judges.traits import JudgeAround
from rag_harness.judges.turn_rules import TurnRules
from rag_harness.measures.judged import (
    CitedClaim,
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
    OpinionOfCriteria,
    OpinionOfLevels,
    OpinionOfNearness,
)
from rag_harness.measures.judged.turn_criteria import is_of_turns
from rag_harness.measures.judged.turn_material import MaterialOfTurn
from rag_harness.models.replies import json_of
from rag_harness.protocols import JudgeParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Message
from rag_harness.work.once import Once

OWN_WORDS = 0.8
"""What the turn's own words weigh in relevancy, beside all that was asked so far."""
_WRITING = "turn_question"
"""The prompt that has a question written out."""


def in_conversations(judge: Judge, parts: JudgeParts) -> Judge:
    """Return ``judge``, made from ``parts``, as one that sees what was said before an answer."""
    return InConversation(judge, (lambda: asking_of(CountedParts(parts), shares=True)) if judge.asks_model else None)


class InConversation(JudgeAround):
    """A judge that sees what was said before an answer.

    Args:
        judge: the judge.
        make_chat: makes the access to its chat model; None for a judge that has none.
    """

    def __init__(self, judge: Judge, make_chat: Callable[[], JudgeChat] | None) -> None:
        super().__init__(judge)
        self._chat = Once(make_chat) if make_chat else None

    @property
    def revision(self) -> str:
        return self._judge.revision

    def identity_of(self, asks: Collection[JudgeQuestion]) -> str:
        """Return the digest of what decides the answers to ``asks`` beside the judge's revision; empty without any."""
        identity = getattr(self._judge, "identity_of", None)
        return str(identity(asks)) if identity else ""

    def identity_of_turns(self) -> str:
        """Return the digest of what decides what is shown of a conversation."""
        return json_digest([prompt(_WRITING), REVISIONS["judges/turns"]])

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        if not isinstance(material, MaterialOfTurn):
            return self._judge.opinion(material, asks)
        said = self._opinion(material, asks)
        return _ByRules(said, TurnRules(self._judge, material, asks)) if CRITERIA in asks else said

    def _opinion(self, material: MaterialOfTurn, asks: Collection[JudgeQuestion]) -> Opinion:
        if not material.said:
            return self._judge.opinion(material, asks)
        if not self.reads_conversation:
            so_far = replace(material, question=asked_so_far(material))
            return _OfTurn(self._judge.opinion(material, asks), lambda: self._weighed(material, so_far))
        shown = replace(material, question=in_conversation(material))
        if self._chat is None:
            return self._judge.opinion(shown, asks)
        others = [ask for ask in asks if ask != "relevancy"]
        return _OfTurn(self._judge.opinion(shown, others), lambda: self._to_the_question_written_out(material))

    async def _weighed(self, now: Material, so_far: Material) -> Relevancy:
        """Return the mean relevancy of an answer to what is asked now and to all that was asked so far."""
        first, second = await self._relevancy(now), await self._relevancy(so_far)
        if first.value is None or second.value is None:
            return first if first.value is None else second
        value = OWN_WORDS * first.value + (1 - OWN_WORDS) * second.value
        both = {"asked_now": first.value, "asked_so_far": second.value}
        return replace(first, value=value, detail={**first.detail, **both})

    async def _to_the_question_written_out(self, material: MaterialOfTurn) -> Relevancy:
        assert self._chat is not None
        question = await written_out(self._chat.get(), material)
        if not question:
            return Relevancy(None, reason=f"the question in its conversation: {Missing.UNREADABLE.value}")
        found = await self._relevancy(replace(material, question=question))
        return replace(found, detail={**found.detail, "question": question})

    async def _relevancy(self, material: Material) -> Relevancy:
        return await self._judge.opinion(material, ["relevancy"]).relevancy()


def in_conversation(material: MaterialOfTurn) -> str:
    """Return what was said before, and below it the question."""
    return (
        f"(The conversation so far, the oldest first.)\n{_lines(material.said)}\n\n"
        f"(What the user asks now, after all this. It is the question.)\n{material.question}"
    )


def asked_so_far(material: MaterialOfTurn) -> str:
    """Return all that the user has asked so far, in a row."""
    return " ".join([*(each.content for each in material.said if each.role == "user"), material.question])


async def written_out(chat: JudgeChat, material: MaterialOfTurn) -> str:
    """Return the question as it would be asked without the conversation; empty where the model's reply has none.

    Raises:
        RagHarnessError: any error of the chat model.
    """
    sections = [("conversation", _lines(material.said)), ("question", material.question)]
    found = json_of(await chat.ask(prompt(_WRITING), sections, {"question": TEXT})) or {}
    return words_of(found.get("question"))


def _lines(said: Sequence[Message]) -> str:
    return "\n".join(f"{each.role}: {each.content}" for each in said)


class _Around:
    """An opinion as it is; a class derived from this asks something in another way."""

    def __init__(self, said: Opinion) -> None:
        self._said = said

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        return await self._said.supported(claims, source)

    async def usefulness(self) -> Sequence[Usefulness]:
        return await self._said.usefulness()

    async def relevancy(self) -> Relevancy:
        return await self._said.relevancy()

    async def citations(self) -> Sequence[CitedClaim]:
        return await cited_claims(self._said)

    async def criteria(self) -> Sequence[CriterionVerdict]:
        if not isinstance(self._said, OpinionOfCriteria):
            raise NotJudgedError("cannot be measured: this judge does not say which criteria an answer meets")
        return await self._said.criteria()

    async def level(self, scale: Criterion) -> LevelReached | None:
        return await self._said.level(scale) if isinstance(self._said, OpinionOfLevels) else None

    async def nearness(self, text: str) -> float:
        if not isinstance(self._said, OpinionOfNearness):
            raise NotJudgedError("this judge has no embedder")
        return await self._said.nearness(text)


class _OfTurn(_Around):
    """An opinion of an answer to a turn, whose relevancy is asked in a way of its own."""

    def __init__(self, said: Opinion, relevancy: Callable[[], Awaitable[Relevancy]]) -> None:
        super().__init__(said)
        self._relevancy = relevancy

    async def relevancy(self) -> Relevancy:
        return await self._relevancy()


class _ByRules(_Around):
    """An opinion whose judge tells only facts: rules answer what is asked about turns."""

    def __init__(self, said: Opinion, rules: TurnRules) -> None:
        super().__init__(said)
        self._rules = rules
        self._found: Shared[Sequence[CriterionVerdict]] = Shared()

    async def criteria(self) -> Sequence[CriterionVerdict]:
        return await self._found.get(CRITERIA, self._criteria)

    async def _criteria(self) -> Sequence[CriterionVerdict]:
        said = await super().criteria()
        return [await self._rules.verdict(each.criterion) if _is_open(each) else each for each in said]


def _is_open(said: CriterionVerdict) -> bool:
    return said.reason == NO_FACT and is_of_turns(said.criterion)
