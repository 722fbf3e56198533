"""Judgement of an answer in its conversation, for judges with and without a chat model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from rag_harness.core.text.contradictions import against
from rag_harness.core.text.language_detection import not_judged
from rag_harness.core.text.sentences import Span, sentence_spans
from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Message
from rag_harness.evaluation.judges.client import TEXT, JudgeChat, prompt, words_of
from rag_harness.evaluation.measures.opinion import (
    ASKS_NOTHING_AGAIN,
    CONTRADICTS_NOTHING,
    CORRECTS,
    MEETS_FROM,
    ONLY_ASKS_BACK,
    ClaimedText,
    CriterionVerdict,
    Material,
    MaterialOfTurn,
    SupportSource,
    Verdicts,
    parts_of_criterion,
    said_before,
)
from rag_harness.models.prompts import json_of

# Rules that answer what is asked about an answer to a turn, for judges without a chat model.
#
# They look for questions, for statements that cannot both hold (``core.text.contradictions``) and, with the judge's own
# verdicts, for statements that another text supports. What words do not show they do not claim: "cannot tell" is the
# answer to more than half of what may be asked (docs/dev/results/conversations.md has how often).

_OFFER = re.compile(
    r"\b(?:any(?:thing)? else|(?:can|may|could) (?:i|we) help|(?:further|other|more) questions|help you with)\b", re.I
)
_DIRECTIVE = re.compile(
    r"\b(?:please|kindly) (?:tell|let|give|send|say|name|specify|provide|confirm|share)\b|\blet (?:me|us) know\b"
    r"|\b(?:i|we)(?: would|'d)? need to know\b|\b(?:tell|give) (?:me|us)\b",
    re.I,
)
_PUTS_RIGHT = re.compile(
    r"\b(?:correct(?:ion|ing)?|mistaken?|i was wrong|sorry|apolog\w{1,10}|actually|in fact|misunder\w{1,10})\b", re.I
)
_FEWEST_SHARED = 2
"""Least number of terms that two sentences share where both speak of the same thing."""
_FEWEST_WORDS = 3


SupportedBy = Callable[[Material, ClaimedText, SupportSource], Awaitable[Verdicts]]
"""Returns the verdict on each claim of a material by one of its texts."""


class TurnRules:
    """Answers criteria about one answer to a turn.

    Args:
        material: the answer, with the messages before it.
        supported: the judge's verdicts on which statements a text supports, of other material.
    """

    def __init__(self, material: Material, supported: SupportedBy) -> None:
        self._material, self._supported = material, supported

    async def verdict(self, criterion: str) -> CriterionVerdict:
        """Return the verdict on a criterion that is asked of turns.

        Raises:
            RagHarnessError: the judge failed.
        """
        plain, truth = parts_of_criterion(criterion)
        said = "\n".join(each.content for each in said_before(self._material))
        if foreign := not_judged(self._material.question, self._material.answer, said):
            return CriterionVerdict(criterion, None, reason=foreign)
        if plain == ASKS_NOTHING_AGAIN:
            return self._asks_nothing_again(criterion)
        if plain == CONTRADICTS_NOTHING:
            return await self._contradicts_nothing(criterion)
        if plain == CORRECTS:
            return await self._corrects(criterion, truth)
        return self._asks_back(criterion, truth, counts_all_cases=plain != ONLY_ASKS_BACK)

    def _asks_nothing_again(self, criterion: str) -> CriterionVerdict:
        span = next(self._asked(), None)
        if span is None:
            return CriterionVerdict(criterion, 1.0, reason="the answer asks nothing")
        why = "it asks back, and whether the user has said that words do not tell"
        return self._quoted(criterion, None, span, why)

    async def _contradicts_nothing(self, criterion: str) -> CriterionVerdict:
        answer, said = self._material.answer, [each.content for each in said_before(self._material)]
        found = next(iter(against(answer, said)), None)
        if found is not None:
            span, other = (found.first.start, found.first.end), found.second.sentence
            if _PUTS_RIGHT.search(answer):
                return self._quoted(criterion, None, span, f"it may put right what was said: “{other}”")
            return self._quoted(criterion, 0.0, span, f"“{answer[slice(*span)]}” against “{other}”, said before")
        same = [span for span in self._sentences() if _speaks_of_the_same(answer[slice(*span)], said)]
        if not same:
            return CriterionVerdict(criterion, 1.0, reason="it speaks of nothing that was said before")
        unsupported = await self._unsupported_by(said, same)
        if unsupported is None:
            return CriterionVerdict(criterion, 1.0, reason="what it says of the same things was said before")
        return self._quoted(criterion, None, unsupported, "whether it contradicts what was said words do not tell")

    async def _unsupported_by(self, said: list[str], spans: list[Span]) -> Span | None:
        """Return the first of these sentences that the earlier messages do not support; None where they support all."""
        material = replace(self._material, contexts=tuple(said))
        verdicts = (await self._supported(material, "answer", "contexts")).each
        # The embedded judge scores a claim with another figure one half, which does not count as support here.
        supported = [each.claim for each in verdicts if each.value is not None and each.value > MEETS_FROM]
        return next((span for span in spans if not any(_within(span, (c.start, c.end)) for c in supported)), None)

    async def _corrects(self, criterion: str, truth: str) -> CriterionVerdict:
        """Return the probability that the answer is right: the highest of the ground truth's sentences."""
        sentences = [truth[start:end] for start, end in sentence_spans(truth)]
        wanted = [each for each in sentences if len(each.split()) >= _FEWEST_WORDS] or [truth]
        material = replace(self._material, quotes=tuple(wanted))
        verdicts = (await self._supported(material, "nuggets", "answer")).each
        valued = [(each.value, each.claim.text) for each in verdicts if each.value is not None]
        if not valued:
            return CriterionVerdict(
                criterion, None, reason=verdicts[0].reason if verdicts else "no words of what is right"
            )
        value, text = max(valued)
        says = "it says" if value >= MEETS_FROM else "it does not say"
        return CriterionVerdict(criterion, value, reason=f"{says} what is right: “{text}”")

    def _asks_back(self, criterion: str, truth: str, counts_all_cases: bool) -> CriterionVerdict:
        answer, asked = self._material.answer, list(self._asked())
        about = terms(f"{truth} {self._material.question}")
        if to_the_point := next((span for span in asked if terms(answer[slice(*span)]) & about), None):
            return self._quoted(criterion, 1.0, to_the_point)
        if asked:
            return self._quoted(criterion, None, asked[0], "it asks, and whether for what is missing words do not tell")
        wanted = figures(truth)
        if counts_all_cases and len(wanted) > 1:
            lacking = wanted - figures(answer)
            why = f"it asks nothing, and leaves out {', '.join(sorted(lacking))}" if lacking else "it gives all cases"
            return CriterionVerdict(criterion, 0.0 if lacking else 1.0, reason=why)
        if counts_all_cases and not self._material.abstained:
            return CriterionVerdict(
                criterion, None, reason="it asks nothing, and whether it gives all cases words do not tell"
            )
        return CriterionVerdict(criterion, 0.0, reason="it asks nothing")

    def _sentences(self) -> Iterator[Span]:
        return sentence_spans(self._material.answer)

    def _asked(self) -> Iterator[Span]:
        """Yield the sentences that ask the user something, offers of help left out."""
        for start, end in self._sentences():
            text = self._material.answer[start:end]
            if (text.rstrip("\"'”’)*_ ").endswith("?") or _DIRECTIVE.search(text)) and not _OFFER.search(text):
                yield start, end

    def _quoted(self, criterion: str, value: float | None, span: Span, why: str = "") -> CriterionVerdict:
        return CriterionVerdict(criterion, value, self._material.answer[slice(*span)], *span, why)


def _speaks_of_the_same(sentence: str, said: list[str]) -> bool:
    mine = terms(sentence)
    spoken = (text[start:end] for text in said for start, end in sentence_spans(text))
    return any(len(mine & terms(each)) >= _FEWEST_SHARED for each in spoken)


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


# What a judge is given in place of the question, where something was said before:
#
# - A judge with a chat model gets what was said before, and below it the question.
# - Relevancy compares questions as vectors, and what was said before would drown the question. A judge with a chat
#   model first writes the question out, so that it can be understood alone. It does not see the answer: else it would
#   read the question as the answer has read it. One call a turn, whatever number of answers there are to it.
# - A judge that compares words and vectors gets the turn's own words. Its relevancy is the mean of two, four parts to
#   one: of the answer to the turn's own words, and to all that the user has asked so far. So it counts most what is
#   asked now, and a little what the conversation is about. docs/dev/results/conversations.md says how this was chosen.

OWN_WORDS = 0.8
"""What the turn's own words weigh in relevancy, beside all that was asked so far."""
WRITING_PROMPT = "turn_question"
"""The prompt that has a question written out."""


def in_conversation(material: MaterialOfTurn) -> str:
    """Return the earlier messages, and below them the question."""
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
    found = json_of(await chat.ask(prompt(WRITING_PROMPT), sections, {"question": TEXT})) or {}
    return words_of(found.get("question"))


def _lines(said: Sequence[Message]) -> str:
    return "\n".join(f"{each.role}: {each.content}" for each in said)
