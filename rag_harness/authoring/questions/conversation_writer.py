"""Conversations by a chat model: prompts, replies, filters of turns, and their lines of queries.jsonl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from pydantic import BaseModel

from rag_harness.authoring.drafting import PATIENCE, DraftCounts
from rag_harness.authoring.questions.document_collection import DocumentCollection, neighbours
from rag_harness.authoring.questions.drafts import BY_LLM, FOUND_WITHIN, MADE_OF, Draft, TakenQuestions, draft_fault
from rag_harness.authoring.questions.facts import shuffled
from rag_harness.authoring.questions.gap_questions import nearest_to
from rag_harness.authoring.questions.llm_writer import (
    ROUNDS,
    DocumentsWriter,
    Quote,
    chunks_by_page,
    evidence_of,
    fault_of_answers,
    quote_fault,
    read_reply,
)
from rag_harness.core.types import Chunk, Hit, Message
from rag_harness.models.prompts import Fault, Prompts

# A turn before it is a row: what the user says, and the question that stands alone with its gold.

FIRST, FOLLOW_UP, SUBJECT_CHANGE, BACK = "first", "follow_up", "subject_change", "back"
COMPARE, CORRECTION, UNANSWERABLE, UNDERSPECIFIED = "compare", "correction", "unanswerable", "underspecified"
TURN_KINDS = (FIRST, FOLLOW_UP, SUBJECT_CHANGE, COMPARE, CORRECTION, UNANSWERABLE, UNDERSPECIFIED, BACK)
"""The kinds of turns, as ``metadata.turn_kind`` names them."""
FEWEST_TURNS, MOST_DRAFTED_TURNS = 3, 6
"""The fewest and the most turns of a drafted conversation."""


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A turn with its gold.

    Attributes:
        kind: one of TURN_KINDS.
        text: what the user says.
        alone: the question that stands alone, with ground truth and evidence.
        left_out: what ``text`` leaves to the turns before it; it must have no content word of that. Empty if it says
            all itself.
        is_bare: whether ``text`` names no thing at all, so that its words must not lead to its page.
    """

    kind: str
    text: str
    alone: Draft
    left_out: str = ""
    is_bare: bool = True

    @property
    def needs_history(self) -> bool:
        """Whether the turn leaves something to the turns before it."""
        return bool(self.left_out)

    @property
    def near_pages(self) -> tuple[str, ...]:
        """The pages of its evidence; of a question that nothing answers, the page that is near."""
        return self.alone.pages or (str(self.alone.metadata.get("nearest_page", "")),)


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """The turns of a conversation, in their order."""

    turns: tuple[TurnDraft, ...]


@dataclass
class GeneratedConversations(DraftCounts):
    """The conversations; ``short`` is how many are missing."""

    drafts: list[ConversationDraft] = field(default_factory=list)
    short: int = 0


_ASKED = "Write a conversation of {turns} turns of these kinds, in this order: {kinds}."
_OF_PAGE = 3
"""How many chunks of a page a conversation is about."""
_WEIGHTS = {
    FOLLOW_UP: 4.0, SUBJECT_CHANGE: 1.0, COMPARE: 1.0, CORRECTION: 1.0, UNANSWERABLE: 0.8, UNDERSPECIFIED: 0.6,
    BACK: 0.6,
}  # fmt: skip
"""How often each kind is asked for relative to the others."""


@dataclass(frozen=True, slots=True)
class ConversationTask:
    """A task for one conversation: the chunks that it is about, and the kinds of its turns."""

    chunks: tuple[Chunk, ...]
    kinds: tuple[str, ...]

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the messages for the model."""
        hits = [Hit(chunk, 0.0, number) for number, chunk in enumerate(self.chunks, 1)]
        asked = _ASKED.format(turns=len(self.kinds), kinds=", ".join(self.kinds))
        return prompts.messages(asked, hits)


def conversation_tasks(collection: DocumentCollection, seed: int) -> Iterator[ConversationTask]:
    """Yield tasks, one page after the other in a random order, then each page again with its next chunks."""
    chance = Random(f"{seed} conversations llm")
    parts, used = chunks_by_page(collection), Counter[str]()
    pages = shuffled([page for page in collection.current if parts.get(page.doc_id)], chance)
    for turn in range(ROUNDS):
        for page in pages:
            own = parts[page.doc_id][_OF_PAGE * turn : _OF_PAGE * (turn + 1)]
            if not own:
                continue
            near = [name for name in neighbours(page, collection) if name in parts]
            kinds = _kinds(bool(near), used, chance)
            other = parts[near[turn % len(near)]][:1] if SUBJECT_CHANGE in kinds else []
            yield ConversationTask((*own, *other), kinds)


def _kinds(may_change: bool, used: Counter[str], chance: Random) -> tuple[str, ...]:
    """Return the kinds of turns, those first that were used least; ``back`` comes behind a change."""
    kinds, length = [FIRST, FOLLOW_UP], chance.randint(FEWEST_TURNS, MOST_DRAFTED_TURNS)
    while len(kinds) < length:
        fitting = {kind for kind in _WEIGHTS if kind == FOLLOW_UP or kind not in kinds}
        if not may_change:
            fitting.discard(SUBJECT_CHANGE)
        if SUBJECT_CHANGE not in kinds[:-1]:
            fitting.discard(BACK)
        kind = min(fitting, key=lambda each: (used[each] / _WEIGHTS[each], each))
        used[kind] += 1
        kinds.append(kind)
    return tuple(kinds)


NAMES_IT = "a follow-up names what it should leave out"
LEADS = "the words of a follow-up lead to its page by themselves"
SAYS_ALL = "a follow-up says as much as the question that stands alone"


def turn_fault(turn: TurnDraft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a turn; None if there is none."""
    if turn.needs_history:
        said = collection.terms(turn.text)
        if collection.terms(turn.left_out) & said:
            return NAMES_IT
        if collection.terms(turn.alone.text) <= said:
            return SAYS_ALL
        if turn.is_bare and not is_subject_free(turn.text, turn.near_pages, collection):
            return LEADS
    return draft_fault(turn.alone, collection)


def is_subject_free(text: str, pages: tuple[str, ...], collection: DocumentCollection) -> bool:
    """Whether the words of a turn do not lead to ``pages``: a search by them does not find any among the first three.

    It is what ``drafts.specific`` asks of a question that stands alone, turned round. In a collection of few pages the
    first third of them counts, and in one of one page any words are as good.
    """
    number = len(collection.documents)
    first = max(1, min(FOUND_WITHIN, number // 3))
    hits = collection.nearest(text, 10 * first) if number > 1 else []
    return not set(list(dict.fromkeys(hit.chunk.doc_id for hit in hits))[:first]) & set(pages)


LONGEST_REPLY = 60_000
"""How many characters of a reply are read."""
_SHAPE = (
    'Reply with one JSON object with "turns", each with "turn_kind", "question", "standalone", "answer" and "quotes", '
    "and nothing else."
)
_BARE = (FOLLOW_UP, CORRECTION, UNANSWERABLE)
"""Kinds of turns whose words must not lead to their pages."""


class _Turn(BaseModel):
    turn_kind: str
    question: str
    answer: str
    standalone: str = ""
    quotes: list[Quote] = []


class _Reply(BaseModel):
    turns: list[_Turn]


def conversation_of(task: ConversationTask, reply: str, collection: DocumentCollection) -> ConversationDraft | str:
    """Return the conversation in a reply, or what is wrong with the reply."""
    read = read_reply(_Reply, reply[:LONGEST_REPLY])
    if read is None:
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
    evidence = evidence_of(turn.quotes)
    if fault := quote_fault(evidence, task.chunks, turn.turn_kind != UNANSWERABLE):
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


# Conversations written by a chat model of role ``writer``, held to the filters of single questions and of turns.
#
# Each turn is checked as a single question is: the model answers its question that stands alone with its evidence, and
# without it.


class ConversationWriter(DocumentsWriter):
    """Asks a model for conversations."""

    again = (
        "That cannot be used: {fault}. Write the whole conversation again, without that fault, or another one. Only "
        "the JSON object."
    )
    remembered = LONGEST_REPLY

    async def ask(
        self,
        wanted: int,
        seed: int,
        most_shared: float = 1.0,
        rejected: Sequence[Draft] = (),
        asked: Sequence[Draft] = (),
    ) -> GeneratedConversations:
        """Return the conversations; fewer than wanted if the pages or the budget allow no more.

        ``rejected`` are questions that a person has rejected, ``asked`` those that are asked beside them.
        """
        found, taken = GeneratedConversations(), TakenQuestions(most_shared, self._collection, rejected)
        for draft in asked:
            taken.add(draft)

        def keep(conversation: ConversationDraft) -> str | None:
            said = TakenQuestions()
            for turn in conversation.turns:
                if fault := taken.fault_of(turn.alone) or said.fault_of(turn.alone):
                    return fault
                said.add(turn.alone)
            for turn in conversation.turns:
                taken.add(turn.alone)
            found.drafts.append(conversation)
            return None

        todo = islice(conversation_tasks(self._collection, seed), PATIENCE + PATIENCE * wanted + len(rejected))
        await self._in_waves(todo, wanted, self._written, keep, found)
        found.short = wanted - len(found.drafts)
        return found

    async def _written(self, task: ConversationTask) -> ConversationDraft | Fault:
        """Return a conversation that passes; else the fault of the last attempt."""
        return await self._draft(task.messages(self._prompts), lambda said: self._read(task, said))

    async def _read(self, task: ConversationTask, said: str) -> ConversationDraft | Fault:
        found = conversation_of(task, said, self._collection)
        if isinstance(found, str):
            return Fault(found)
        for number, turn in enumerate(found.turns, 1):
            own = self._collection.about(turn.near_pages)
            if fault := turn_fault(turn, own) or await fault_of_answers(turn.alone, self._chat, own):
                return Fault(f"turn {number}: {fault}")
        return found


def conversation_rows(
    drafts: Iterable[ConversationDraft], by: str, taken: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a line for each conversation, numbered, as ``data.queries`` reads them. No id is in ``taken``."""
    number = 0
    for draft in drafts:
        number += 1
        while f"conv_{number:03d}" in taken:
            number += 1
        yield {
            "conversation": f"conv_{number:03d}",
            "turns": [_turn(turn) for turn in draft.turns],
            "metadata": {"generated_by": by, "reviewed": "no"},
        }


def _turn(turn: TurnDraft) -> dict[str, Any]:
    alone = turn.alone
    return {
        "query": turn.text,
        **({} if alone.text == turn.text else {"standalone": alone.text}),
        "query_type": alone.kind,
        "ground_truth": alone.ground_truth,
        "context_reference": list(alone.pages),
        "evidence": [{"filename": each.filename, "quote": each.quote} for each in alone.evidence],
        "metadata": {"turn_kind": turn.kind, "made_of": MADE_OF.join(alone.made_of), **alone.metadata},
    }
