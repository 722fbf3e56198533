"""Splits a text in one call: into its claims, and the questions that it would answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_harness.judges.llm.judge_chat import JudgeChat, prompt
from rag_harness.judges.llm.judge_replies import words_of
from rag_harness.judges.llm.judging_limits import check_length, most_claims
from rag_harness.judges.llm.schemas import BOOLEAN, TEXT, Schema, list_schema, object_schema
from rag_harness.judges.llm.spans import placed
from rag_harness.measures.judged import Claim
from rag_harness.models.replies import json_of

SplitPart = Literal["claims", "questions"]
SplitParts = tuple[SplitPart, ...]
FORMS: tuple[SplitParts, ...] = (("claims",), ("questions",), ("claims", "questions"))
QUESTIONS_OF_AN_ANSWER = 3
"""As in RAGAS: relevancy is the mean over these questions."""

_CLAIM = object_schema({"quote": TEXT, "claim": TEXT})
_QUESTIONS = list_schema(TEXT, QUESTIONS_OF_AN_ANSWER, QUESTIONS_OF_AN_ANSWER)


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a text.

    ``claims`` and ``questions`` are None where they were not asked for, or cannot be read; ``again`` says that the
    judge was asked a second time.
    """

    claims: tuple[Claim, ...] | None = None
    questions: tuple[str, ...] | None = None
    noncommittal: bool = False
    again: bool = False

    def lacks(self, wanted: SplitParts) -> SplitParts:
        """Return the parts of ``wanted`` that are missing."""
        found: Mapping[SplitPart, object] = {"claims": self.claims, "questions": self.questions}
        return tuple(part for part in wanted if found[part] is None)


async def split(asking: JudgeChat, question: str, text: str, wanted: SplitParts) -> Split:
    """Return the parts of ``text``. Unreadable parts are asked for once more.

    Raises:
        ModelOutputError: the text is too long.
        RagHarnessError: any error of the chat model.
    """
    if not text.strip():
        return Split((), ())
    check_length("a text", text)
    first = await _asked(asking, question, text, wanted)
    missing = first.lacks(wanted)
    if not missing:
        return first
    second = await _asked(asking, question, text, missing, prompt("fused_again"))
    return Split(
        second.claims if "claims" in missing else first.claims,
        second.questions if "questions" in missing else first.questions,
        second.noncommittal if "questions" in missing else first.noncommittal,
        again=True,
    )


async def _asked(asking: JudgeChat, question: str, text: str, wanted: SplitParts, end: str = "") -> Split:
    """Ask for ``wanted``. Questions come from the text alone: the real one is shown only where claims are wanted."""
    sections = [("question", question)] if "claims" in wanted else []
    task = "\n\n".join(["You are given a text.", *(prompt(f"fused_{part}") for part in wanted)])
    reply = {name: schema for part in wanted for name, schema in _reply(part, text).items()}
    found = json_of(await asking.ask(task, [*sections, ("text", text)], reply, end)) or {}
    return Split(_claims(found, text), *_questions(found))


def _reply(part: SplitPart, text: str) -> Mapping[str, Schema]:
    if part == "questions":
        return {"questions": _QUESTIONS, "noncommittal": BOOLEAN}
    return {"claims": list_schema(_CLAIM, most_claims(text))}


def _claims(found: Mapping[str, Any], text: str) -> tuple[Claim, ...] | None:
    """Read the claims. One unreadable claim makes the list invalid: without it the denominator would shrink."""
    listed = found.get("claims")
    if not isinstance(listed, list):
        return None
    said = [_claim(entry) for entry in listed]
    return placed(said, text) if all(claim for claim, _ in said) else None


def _claim(entry: object) -> tuple[str, str]:
    """Return a claim and its quote; the claim is empty where it cannot be read."""
    claim, quote = (entry.get("claim"), entry.get("quote")) if isinstance(entry, Mapping) else (entry, "")
    return words_of(claim), words_of(quote)


def _questions(found: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    listed, noncommittal = found.get("questions"), found.get("noncommittal")
    questions = tuple(words_of(each) for each in listed) if isinstance(listed, list) else ()
    if len(questions) != QUESTIONS_OF_AN_ANSWER or not all(questions) or not isinstance(noncommittal, bool):
        return None, False
    return questions, noncommittal


def form_first(wanted: SplitParts, needed: SplitPart) -> Sequence[SplitParts]:
    """Return the forms that contain ``needed``, with ``wanted`` first where it is one of them."""
    return sorted((form for form in FORMS if needed in form), key=lambda form: form != wanted)
