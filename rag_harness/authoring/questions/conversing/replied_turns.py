"""Reads a conversation from a model's reply, or returns the fault for asking again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from rag_harness.authoring.questions.conversing.subject_free import SAYS_ALL
from rag_harness.authoring.questions.conversing.told_to_converse import ConversationTask
from rag_harness.authoring.questions.conversing.turn_draft import (
    BACK,
    CORRECTION,
    FEWEST_TURNS,
    FIRST,
    FOLLOW_UP,
    MOST_DRAFTED_TURNS,
    SUBJECT_CHANGE,
    TURN_KINDS,
    UNANSWERABLE,
    ConversationDraft,
    TurnDraft,
)
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import BY_LLM, Draft
from rag_harness.authoring.questions.negative import nearest_to
from rag_harness.types import Evidence

LONGEST_REPLY = 60_000
"""How many characters of a reply are read."""
_SHAPE = (
    'Reply with one JSON object with "turns", each with "turn_kind", "question", "standalone", "answer" and "quotes", '
    "and nothing else."
)
_BARE = (FOLLOW_UP, CORRECTION, UNANSWERABLE)
"""Kinds of turns whose words must not lead to their pages."""


class _Quote(BaseModel):
    filename: str
    quote: str


class _Turn(BaseModel):
    turn_kind: str
    question: str
    answer: str
    standalone: str = ""
    quotes: list[_Quote] = []


class _Reply(BaseModel):
    turns: list[_Turn]


def conversation_of(task: ConversationTask, reply: str, collection: DocumentCollection) -> ConversationDraft | str:
    """Return the conversation in a reply, or what is wrong with the reply."""
    said = reply[:LONGEST_REPLY]
    try:
        read = _Reply.model_validate(json.JSONDecoder().raw_decode(said[said.index("{") :])[0])
    except (ValueError, ValidationError, RecursionError):
        return f"it is not what was asked for. {_SHAPE}"
    if fault := _order_fault([turn.turn_kind for turn in read.turns]):
        return fault
    turns: list[TurnDraft] = []
    for number, turn in enumerate(read.turns, 1):
        found = _draft(task, turn, collection)
        if isinstance(found, str):
            return f"turn {number}: {found}"
        turns.append(found)
    return ConversationDraft(tuple(turns))


def _order_fault(kinds: Sequence[str]) -> str:
    if not FEWEST_TURNS <= len(kinds) <= MOST_DRAFTED_TURNS:
        return f"it has {len(kinds)} turns, and {FEWEST_TURNS} to {MOST_DRAFTED_TURNS} are wanted"
    if unknown := [kind for kind in kinds if kind not in TURN_KINDS]:
        return f"turn_kind {unknown[0]!r} is none of {', '.join(TURN_KINDS)}"
    if kinds[0] != FIRST or FIRST in kinds[1:]:
        return "the first turn, and no other, is of the kind first"
    if BACK in kinds and SUBJECT_CHANGE not in kinds[: kinds.index(BACK)]:
        return "back comes behind a subject_change"
    return "" if FOLLOW_UP in kinds else "no turn is a follow_up"


def _draft(task: ConversationTask, turn: _Turn, collection: DocumentCollection) -> TurnDraft | str:
    text, answer = " ".join(turn.question.split()), turn.answer.strip()
    alone = " ".join(turn.standalone.split()) or (text if turn.turn_kind in (FIRST, SUBJECT_CHANGE) else "")
    if not (text and alone and answer):
        return f"question, standalone or answer is empty. {_SHAPE}"
    evidence = tuple(Evidence(each.filename.split(",")[0].strip(), each.quote) for each in turn.quotes)
    if fault := _evidence_fault(task, turn, evidence):
        return fault
    is_bare = turn.turn_kind in _BARE
    missing = collection.terms(alone) - collection.terms(text) if is_bare else frozenset()
    if is_bare and not missing:
        return SAYS_ALL
    near = task.chunks[0].doc_id
    told = {"nearest_page": near, "nearest": nearest_to(alone, collection)} if not evidence else {}
    pages = {each.filename for each in evidence}
    kind = "negative" if not evidence else "multi_hop" if len(pages) > 1 else "direct"
    draft = Draft(kind, alone, alone, answer, answer, evidence, (BY_LLM,), told)
    return TurnDraft(turn.turn_kind, text, draft, " ".join(sorted(missing)), is_bare)


def _evidence_fault(task: ConversationTask, turn: _Turn, evidence: Sequence[Evidence]) -> str:
    if turn.turn_kind == UNANSWERABLE:
        return '"quotes" must be empty: nothing answers the question' if evidence else ""
    given, quoted = {chunk.doc_id for chunk in task.chunks}, {each.filename for each in evidence}
    if not quoted or not quoted <= given:
        return f"quotes must be of {', '.join(sorted(given))}; found {', '.join(sorted(quoted)) or 'none'}"
    return "a quote has fewer than 3 letters" if any(len(each.quote.strip()) < 3 for each in evidence) else ""
