"""Questions written by a chat model of role ``writer``. They must pass the same filters, or the model is asked again.

Calls are recorded like all others: in mode ``record``, a run after a killed one finds its paid answers. Two more calls
for each question check that the model can answer it with its evidence, and cannot without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from rag_harness.authoring.questions.asked_in_waves import PATIENCE, asked_in_waves
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.filters import draft_fault
from rag_harness.authoring.questions.known_without import fault_of_answers
from rag_harness.authoring.questions.likeness import TakenQuestions
from rag_harness.authoring.questions.negative import nearest_to
from rag_harness.authoring.questions.question_making import QUESTION_KINDS, GeneratedQuestions
from rag_harness.authoring.questions.replied import draft_of
from rag_harness.authoring.questions.told_to_ask import Task, tasks
from rag_harness.models.prompts import Prompts
from rag_harness.models.until_right import Fault, ask_until_right
from rag_harness.protocols import ChatModel

_REPEAT = (
    "That cannot be used: {fault}. Write it again, or another question that has no such fault. Only the JSON object."
)


class Writer:
    """Asks a model for questions.

    Args:
        chat: the model.
        prompts: the model's instructions.
        collection: the documents.
        at_once: how many questions are worked on at one time.
    """

    def __init__(self, chat: ChatModel, prompts: Prompts, collection: DocumentCollection, at_once: int) -> None:
        self._chat, self._prompts, self._collection = chat, prompts, collection
        self._at_once = max(1, at_once)

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
                await asked_in_waves(todo, wanted[kind], self._at_once, self._written, keep, found)
            lacking = wanted.get(kind, 0) - sum(draft.kind == kind for draft in found.drafts)
            found.short |= {kind: lacking} if lacking else {}
        return found

    async def _written(self, task: Task) -> Draft | Fault:
        """Return a question that passes; else the fault of the last attempt."""
        return await ask_until_right(
            self._chat, task.messages(self._prompts), lambda said: self._read(task, said), _REPEAT
        )

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
