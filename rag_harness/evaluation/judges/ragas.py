"""The judge ``ragas``: the definitions of RAGAS 0.4.3, call for call, with our own prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rag_harness.core.errors import ModelOutputError, NotJudgedError
from rag_harness.core.protocols import JudgeParts
from rag_harness.evaluation.judges.client import (
    TEXT,
    MarkedText,
    Missing,
    Schema,
    Shared,
    list_schema,
    numbered,
    object_schema,
    objects_of,
    prompt,
    whole_number,
    words_of,
)
from rag_harness.evaluation.judges.questions import (
    AskingJudge,
    check_length,
    most_claims,
    placed,
    too_many,
)
from rag_harness.evaluation.measures.opinion import (
    NOTHING_TO_JUDGE_BY,
    CitedClaim,
    Claim,
    ClaimedText,
    JudgeQuestion,
    Material,
    Relevancy,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
    passages_of,
    unjudged,
)
from rag_harness.models.prompts import json_of

# Context precision makes a call for each chunk, one after another; faithfulness makes two, and answer relevancy three:
# 10 calls with five chunks. Each further pair of claims and source needs one more. The ground truth needs one more for
# its statements. A row splits its answer and its ground truth only once: measures that compare two verdicts need the
# same statements. No call is repeated, and rows share none. Where RAGAS gives NaN, or divides by the number of returned
# verdicts, the value here is None with the reason.

STRICTNESS = 3
"""Number of questions for relevancy. Each request says which of the three it is: equal requests would have the same
recorded reply."""
_BIT: Schema = {"type": "integer", "enum": [0, 1]}
_VERDICT = {"statement": TEXT, "reason": TEXT, "verdict": _BIT}


class RagasJudge(AskingJudge):
    """Asks the model of role ``judge`` the questions of RAGAS. ``parts`` are those of the run."""

    name = "ragas"

    def __init__(self, parts: JudgeParts) -> None:
        super().__init__(parts, shares=False)

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> RagasOpinion:  # noqa: ARG002 - nothing is shared
        return RagasOpinion(self, material)


class RagasOpinion:
    """The judge's opinion of one answer."""

    def __init__(self, judge: RagasJudge, material: Material) -> None:
        self._asking, self._nearness, self._material = judge.asking, judge.nearness, material
        self._split: Shared[tuple[Claim, ...]] = Shared()

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        passages = passages_of(self._material, source)
        if not passages:
            return unjudged(claims)
        found = await self._split.get(claims, lambda: self._statements(claims))
        return Verdicts(await self._verdicts(found, "\n".join(passages.values())) if found else ())

    async def citations(self) -> Sequence[CitedClaim]:
        """Raise an error: RAGAS says nothing of citations.

        Raises:
            NotJudgedError: always.
        """
        raise NotJudgedError("cannot be measured: RAGAS defines no measure of citations; --rag-judge=fused does")

    async def usefulness(self) -> Sequence[Usefulness]:
        return [await self._useful(context) for context in self._material.contexts]

    async def relevancy(self) -> Relevancy:
        if not self._material.answer.strip():
            return Relevancy(None, reason="no text in the answer")
        check_length("an answer", self._material.answer)
        said = [await self._question(number) for number in range(1, STRICTNESS + 1)]
        if None in said:
            return Relevancy(None, reason=Missing.UNREADABLE.value)
        questions, noncommittal = zip(*(each for each in said if each), strict=True)
        return await self._nearness.relevancy(self._material.question, questions, all(noncommittal))

    async def _useful(self, context: str) -> Usefulness:
        material = self._material
        if not material.ground_truth.strip():
            return Usefulness(None, NOTHING_TO_JUDGE_BY)
        given = [("question", material.question), ("answer", material.ground_truth), ("context", context)]
        found = await self._asked("usefulness", given, {"reason": TEXT, "verdict": _BIT})
        return Usefulness(*_bit(found))

    async def _statements(self, which: ClaimedText) -> tuple[Claim, ...]:
        material = self._material
        if which == "nuggets":
            return tuple(Claim(quote) for quote in material.quotes if quote.strip())
        text = material.answer if which == "answer" else material.ground_truth
        if not text.strip():
            return ()
        check_length("a text", text)
        given = [("question", material.question), ("answer", text)]
        found = await self._asked("statements", given, {"statements": list_schema(TEXT, most_claims(text))})
        listed = found.get("statements") if found is not None else None
        statements = [words_of(each) for each in listed] if isinstance(listed, list) else [""]
        if not all(statements):
            raise ModelOutputError(f"no statements of the {which.replace('_', ' ')}: {Missing.UNREADABLE.value}")
        if unbelievable := too_many(len(statements)):
            raise ModelOutputError(unbelievable)
        return placed([(each, "") for each in statements], text)

    async def _verdicts(self, claims: Sequence[Claim], context: str) -> tuple[Verdict, ...]:
        """Judge all statements in one call. Verdicts are matched by order, so their number must be right."""
        given: list[MarkedText] = [("context", context), *numbered("statement", [claim.text for claim in claims])]
        reply = {"statements": list_schema(object_schema(_VERDICT), len(claims), len(claims))}
        found = await self._asked("verdicts", given, reply)
        listed = objects_of(found, "statements")
        if listed is None or len(listed) != len(claims):
            why = (Missing.UNREADABLE if listed is None else Missing.NUMBERS).value
            return tuple(Verdict(claim, None, reason=why) for claim in claims)
        bits = [_bit(each) for each in listed]
        return tuple(Verdict(claim, bit, reason=why) for claim, (bit, why) in zip(claims, bits, strict=True))

    async def _question(self, number: int) -> tuple[str, int] | None:
        reply = {"question": TEXT, "noncommittal": _BIT}
        end = f"This is question {number} of {STRICTNESS}."
        found = await self._asked("question", [("answer", self._material.answer)], reply, end) or {}
        question, noncommittal = words_of(found.get("question")), whole_number(found.get("noncommittal"))
        return (question, noncommittal) if question and noncommittal in (0, 1) else None

    async def _asked(
        self, task: str, given: Sequence[MarkedText], reply: Mapping[str, Schema], end: str = ""
    ) -> Mapping[str, Any] | None:
        return json_of(await self._asking.ask(prompt(f"ragas_{task}"), given, reply, end))


def _bit(found: Mapping[str, Any] | None) -> tuple[float | None, str]:
    """Return a verdict of 0 or 1; None with the reason where there is none."""
    if found is None:
        return None, Missing.UNREADABLE.value
    bit = whole_number(found.get("verdict"))
    if bit is None and "verdict" not in found:
        return None, Missing.LEFT_OUT.value
    return (float(bit), "") if bit in (0, 1) else (None, Missing.WORD.value)


def create(parts: JudgeParts) -> RagasJudge:
    """Return the judge of role ``judge`` that asks the questions of RAGAS."""
    return RagasJudge(parts)
