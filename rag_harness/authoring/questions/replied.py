"""Reads a draft from a model's reply, or returns the faults for asking again."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_harness.authoring.questions.draft import BY_LLM, Draft
from rag_harness.authoring.questions.told_to_ask import Task
from rag_harness.types import Evidence

LONGEST_DRAFT_REPLY = 20_000
"""How many characters of a reply are read."""
_SHAPE = 'Reply with one JSON object with "question", "answer" and "quotes", and nothing else.'


class _Quote(BaseModel):
    filename: str
    quote: str


class _Reply(BaseModel):
    question: str
    answer: str
    quotes: list[_Quote] = []


def draft_of(task: Task, reply: str) -> Draft | str:
    """Return the draft in a reply, or what is wrong with the reply."""
    try:
        read = _Reply.model_validate(_object(reply[:LONGEST_DRAFT_REPLY]))
    except (ValueError, ValidationError):
        return f"it is not what was asked for. {_SHAPE}"
    if not read.question.strip() or not read.answer.strip():
        return f"question or answer is empty. {_SHAPE}"
    evidence = tuple(Evidence(each.filename.split(",")[0].strip(), each.quote) for each in read.quotes)
    fault = _fault(task, evidence)
    question = " ".join(read.question.split())
    drafted = Draft(task.kind, question, question, read.answer.strip(), read.answer, evidence, (BY_LLM,), _told(task))
    return fault or drafted


def _object(reply: str) -> Any:
    return json.JSONDecoder().raw_decode(reply[reply.index("{") :])[0]


def _fault(task: Task, evidence: tuple[Evidence, ...]) -> str:
    if task.kind == "negative":
        return '"quotes" must be empty: nothing answers the question' if evidence else ""
    given = {chunk.doc_id for chunk in task.chunks}
    quoted = {each.filename for each in evidence}
    if not quoted or not quoted <= given:
        return f"quotes must be of {', '.join(sorted(given))}; found {', '.join(sorted(quoted)) or 'none'}"
    if len(quoted) < len(given):
        return f"no quote of {', '.join(sorted(given - quoted))}: the question must need both sources"
    return "a quote has fewer than 3 letters" if any(len(each.quote.strip()) < 3 for each in evidence) else ""


def _told(task: Task) -> dict[str, Any]:
    if task.kind == "negative":
        return {"nearest_page": task.chunks[0].doc_id}
    return {"hops": 2} if task.kind == "multi_hop" else {}
