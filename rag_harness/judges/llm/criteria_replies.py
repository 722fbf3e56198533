"""Asks the fused judge which criteria an answer meets, and reads what it says of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.judges.llm.judge_chat import JudgeChat, prompt
from rag_harness.judges.llm.judge_replies import Missing, PassageVerdict, entries_of, words_of
from rag_harness.judges.llm.marked_texts import numbered
from rag_harness.judges.llm.schemas import NUMBER, TEXT, list_schema, object_schema
from rag_harness.judges.llm.spans import find_quote
from rag_harness.measures.judged.criteria import CriterionVerdict
from rag_harness.models.recording.store import key_of

CANNOT_TELL = "the judge cannot tell"
NOT_THERE = "the words that the judge quoted do not stand in the answer"
_VALUES = {"met": 1.0, "not met": 0.0, "cannot tell": None}
_VERDICT = object_schema({"index": NUMBER, "quote": TEXT, "verdict": {"type": "string", "enum": list(_VALUES)}})


@dataclass(frozen=True, slots=True)
class CriterionReply(PassageVerdict):
    """A verdict on a criterion: 1, 0 or none, with the words of the answer that decide it, or why there is none."""

    quote: str = ""
    why: str = ""


async def ask_criteria(
    asking: JudgeChat, question: str, answer: str, criteria: Sequence[str], again: bool
) -> list[CriterionReply]:
    """Return the reply on each criterion, from one call."""
    sections = [("question", question), ("answer", answer), *numbered("criterion", criteria)]
    end = prompt("fused_again") if again else ""
    reply = {"verdicts": list_schema(_VERDICT, len(criteria), len(criteria))}
    text = await asking.ask(prompt("fused_criteria"), sections, reply, end)
    found = entries_of(text, len(criteria))
    if isinstance(found, Missing):
        return [CriterionReply(missing=found)] * len(criteria)
    return [_reply(entries) for entries in found]


def _reply(entries: Sequence[Mapping[str, Any]]) -> CriterionReply:
    if len(entries) != 1:
        return CriterionReply(missing=Missing.TWICE if entries else Missing.LEFT_OUT)
    said = entries[0].get("verdict")
    word = " ".join(said.split()).lower() if isinstance(said, str) else ""
    if word not in _VALUES:
        return CriterionReply(missing=Missing.WORD)
    value = _VALUES[word]
    return CriterionReply(value, quote=words_of(entries[0].get("quote")), why=CANNOT_TELL if value is None else "")


def verdict_on(criterion: str, said: CriterionReply, answer: str) -> CriterionVerdict:
    """Return a reply as a verdict. Words that do not stand in the answer are no evidence: then there is no verdict."""
    if said.missing:
        return CriterionVerdict(criterion, None, reason=said.missing.value)
    start, end = find_quote(said.quote, answer)
    found = CriterionVerdict(criterion, said.value, answer[start:end] if start >= 0 else "", start, end, said.why)
    if said.quote and start < 0 and said.value is not None:
        return replace(found, value=None, reason=NOT_THERE)
    return found


def in_any_order(criteria: Sequence[str], answer: str, repeat: int) -> list[str]:
    """Return criteria in an order of their own for each answer and repeat, so that no place favours one of them."""
    return sorted(criteria, key=lambda each: key_of(str(repeat), answer, each))
