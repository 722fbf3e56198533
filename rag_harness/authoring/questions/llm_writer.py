"""Questions by a chat model: prompts, replies, and the check that they need their evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any, TypeVar

from pydantic import BaseModel

from rag_harness.authoring.drafting import PATIENCE, LlmWriter
from rag_harness.authoring.questions.document_collection import DocumentCollection, neighbours
from rag_harness.authoring.questions.drafts import BY_LLM, Draft, TakenQuestions, draft_fault
from rag_harness.authoring.questions.facts import shuffled
from rag_harness.authoring.questions.gap_questions import nearest_to
from rag_harness.authoring.questions.generator import QUESTION_KINDS, GeneratedQuestions
from rag_harness.authoring.questions.sentence_facts import seen
from rag_harness.core.protocols import ChatModel
from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Chunk, Document, Evidence, Hit, Message
from rag_harness.models.prompts import Fault, Prompts

_TASKS = {
    "direct": "Write one question that the source answers.",
    "multi_hop": "Write one question that needs both sources: neither alone may hold the answer. Quote from each.",
    "negative": (
        "Write one question that a reader of the source would ask next, that is close to its topic, and that it does "
        'not answer. Say in "answer" what is not said. Leave "quotes" empty.'
    ),
}
ROUNDS = 5
"""The most questions for one page, each about another part of it if it has so many."""
LEAST = 200
"""The fewest characters of a chunk that a question can be about."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task for one question: its kind, and the chunks that it should be about."""

    kind: str
    chunks: tuple[Chunk, ...]

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the messages for the model."""
        hits = [Hit(chunk, 0.0, number) for number, chunk in enumerate(self.chunks, 1)]
        return prompts.messages(_TASKS[self.kind], hits)


def tasks(kind: str, collection: DocumentCollection, seed: int) -> Iterator[Task]:
    """Yield tasks of a kind, one page after the other in a random order, then each page again with another part."""
    chance = Random(f"{seed} {kind} llm")
    parts = chunks_by_page(collection)
    pages = shuffled([page for page in collection.current if parts.get(page.doc_id)], chance)
    for turn in range(ROUNDS):
        for page in pages:
            own = parts[page.doc_id]
            if turn < len(own):
                chunk = own[(turn * 7) % len(own)] if len(own) % 7 else own[turn]
                yield from _task(kind, page, chunk, parts, collection, turn)


def _task(
    kind: str, page: Document, chunk: Chunk, parts: dict[str, list[Chunk]], collection: DocumentCollection, turn: int
) -> Iterator[Task]:
    if kind != "multi_hop":
        yield Task(kind, (chunk,))
        return
    near = [name for name in neighbours(page, collection) if name in parts]
    if turn < len(near):
        nearest = [hit.chunk for hit in collection.nearest(chunk.text[:400], 50) if hit.chunk.doc_id == near[turn]]
        yield Task(kind, (chunk, (nearest or parts[near[turn]])[0]))


def chunks_by_page(collection: DocumentCollection) -> dict[str, list[Chunk]]:
    """Return the chunks of current pages that questions can be about."""
    found: dict[str, list[Chunk]] = {}
    for chunk in collection.chunks:
        if len(chunk.text) >= LEAST and chunk.doc_id not in collection.superseded:
            found.setdefault(chunk.doc_id, []).append(chunk)
    return found


LONGEST_DRAFT_REPLY = 20_000
"""How many characters of a reply are read."""
_SHAPE = 'Reply with one JSON object with "question", "answer" and "quotes", and nothing else.'


_T = TypeVar("_T", bound=BaseModel)


class Quote(BaseModel):
    """A quote in a reply. Behind a comma, the name of a file has the label of its source."""

    filename: str
    quote: str


class _Reply(BaseModel):
    question: str
    answer: str
    quotes: list[Quote] = []


def read_reply(shape: type[_T], reply: str) -> _T | None:
    """Return the first object of a reply; None where it has another form."""
    try:
        return shape.model_validate(json.JSONDecoder().raw_decode(reply[reply.index("{") :])[0])
    except (ValueError, RecursionError):
        return None


def evidence_of(quotes: Sequence[Quote]) -> tuple[Evidence, ...]:
    """Return the quotes of a reply as evidence."""
    return tuple(Evidence(each.filename.split(",")[0].strip(), each.quote) for each in quotes)


def quote_fault(
    evidence: Sequence[Evidence], chunks: Sequence[Chunk], is_answerable: bool, needs_all: bool = False
) -> str:
    """Return what is wrong with quotes from ``chunks``; empty if nothing is. ``needs_all``: each page is quoted."""
    if not is_answerable:
        return '"quotes" must be empty: nothing answers the question' if evidence else ""
    given, quoted = {chunk.doc_id for chunk in chunks}, {each.filename for each in evidence}
    if not quoted or not quoted <= given:
        return f"quotes must be of {', '.join(sorted(given))}; found {', '.join(sorted(quoted)) or 'none'}"
    if needs_all and len(quoted) < len(given):
        return f"no quote of {', '.join(sorted(given - quoted))}: the question must need both sources"
    return "a quote has fewer than 3 letters" if any(len(each.quote.strip()) < 3 for each in evidence) else ""


def draft_of(task: Task, reply: str) -> Draft | str:
    """Return the draft in a reply, or what is wrong with the reply."""
    read = read_reply(_Reply, reply[:LONGEST_DRAFT_REPLY])
    if read is None:
        return f"it is not what was asked for. {_SHAPE}"
    if not read.question.strip() or not read.answer.strip():
        return f"question or answer is empty. {_SHAPE}"
    evidence = evidence_of(read.quotes)
    fault = quote_fault(evidence, task.chunks, task.kind != "negative", needs_all=True)
    question = " ".join(read.question.split())
    drafted = Draft(task.kind, question, question, read.answer.strip(), read.answer, evidence, (BY_LLM,), _told(task))
    return fault or drafted


def _told(task: Task) -> dict[str, Any]:
    if task.kind == "negative":
        return {"nearest_page": task.chunks[0].doc_id}
    return {"hops": 2} if task.kind == "multi_hop" else {}


# A question that is answered without its documents only tests the model's memory. A question that is not answered with
# its evidence tests nothing.

UNKNOWN_REPLY = "UNKNOWN"
"""The model's reply if it does not know the answer."""
HELD = 0.6
"""An answer adds words to its question. A reply must have this share of them to count as the answer."""
_WITH = "Answer from the sources alone, in one or two sentences. Say only UNKNOWN where they do not answer."
_WITHOUT = "Answer in one or two sentences. Say only UNKNOWN unless you are sure."
_QUESTION = "{sources}\n\n{question}"


async def fault_of_answers(draft: Draft, chat: ChatModel, collection: DocumentCollection) -> str | None:
    """Return the reason against a draft, from the model's own answers with and without evidence; None if none."""
    if draft.kind == "negative":
        return await _fault_of_negative(draft, chat, collection)
    quotes = "\n\n".join(f"[{each.filename}] {seen(each.quote)}" for each in draft.evidence)
    told = await _said(chat, _WITH, _QUESTION.format(sources=quotes, question=draft.text))
    if not gives(told, draft):
        return "it is not answered from its evidence alone"
    return "it is answered without the documents" if gives(await _said(chat, _WITHOUT, draft.text), draft) else None


async def _fault_of_negative(draft: Draft, chat: ChatModel, collection: DocumentCollection) -> str | None:
    near = "\n\n".join(f"[{hit.chunk.doc_id}] {hit.chunk.text}" for hit in collection.nearest(draft.plain, 5))
    said = await _said(chat, _WITH, _QUESTION.format(sources=near, question=draft.text))
    return None if UNKNOWN_REPLY in said.upper() else "a passage answers it"


async def _said(chat: ChatModel, system: str, user: str) -> str:
    return (await chat.complete([Message("system", system), Message("user", user)])).text


def gives(reply: str, draft: Draft) -> bool:
    """Whether a reply gives the answer: its figures, and most of the words that it adds to the question."""
    if re.search(rf"\b{UNKNOWN_REPLY}\b", reply, re.I):
        return False
    wanted = terms(draft.ground_truth) - terms(draft.text)
    numbers = figures(draft.ground_truth) - figures(draft.text)
    held = len(wanted & terms(reply)) / len(wanted) if wanted else 1.0
    return numbers <= figures(reply) and held >= (HELD if not numbers else HELD / 2)


# Questions written by a chat model of role ``writer``. They must pass the same filters, or the model is asked again.
#
# Two more calls for each question check that the model can answer it with its evidence, and cannot without.


class DocumentsWriter(LlmWriter):
    """Asks a model for drafts about documents.

    Args:
        chat: the model.
        prompts: the model's instructions.
        collection: the documents, in any language that words can be read of.
        at_once: how many drafts are worked on at one time.
    """

    def __init__(self, chat: ChatModel, prompts: Prompts, collection: DocumentCollection, at_once: int) -> None:
        super().__init__(chat, at_once)
        self._prompts, self._collection = prompts, collection


class Writer(DocumentsWriter):
    """Asks a model for questions."""

    again = (
        "That cannot be used: {fault}. Write it again, or another question that has no such fault. Only the JSON "
        "object."
    )

    async def ask(
        self, wanted: Mapping[str, int], seed: int, most_shared: float = 1.0, rejected: Sequence[Draft] = ()
    ) -> GeneratedQuestions:
        """Return the questions; fewer than wanted if the pages or the budget allow no more.

        ``rejected`` are questions that a person has rejected; other questions replace them.
        """
        found, asked = GeneratedQuestions(), TakenQuestions(most_shared, self._collection, rejected)

        def keep(draft: Draft) -> str | None:
            if fault := asked.fault_of(draft):
                return fault
            asked.add(draft)
            found.drafts.append(draft)
            return None

        for kind in QUESTION_KINDS:
            if wanted.get(kind) and not found.stopped:
                most = PATIENCE + PATIENCE * wanted[kind] + len(rejected)
                todo = islice(tasks(kind, self._collection, seed), most)
                await self._in_waves(todo, wanted[kind], self._written, keep, found)
            lacking = wanted.get(kind, 0) - sum(draft.kind == kind for draft in found.drafts)
            found.short |= {kind: lacking} if lacking else {}
        return found

    async def _written(self, task: Task) -> Draft | Fault:
        """Return a question that passes; else the fault of the last attempt."""
        return await self._draft(task.messages(self._prompts), lambda said: self._read(task, said))

    async def _read(self, task: Task, said: str) -> Draft | Fault:
        draft = draft_of(task, said)
        if isinstance(draft, str):
            return Fault(draft)
        fault = draft_fault(draft, self._collection) or await fault_of_answers(draft, self._chat, self._collection)
        return Fault(fault) if fault else self._with_nearest(draft)

    def _with_nearest(self, draft: Draft) -> Draft:
        if draft.kind != "negative":
            return draft
        return replace(draft, metadata={**draft.metadata, "nearest": nearest_to(draft.plain, self._collection)})
